"""ASSET is Algorithm 1 of the paper, step by step, in all its variants; its certificate holds."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import Asset, Hinge, Logistic, Pegasos, Problem, SquaredHinge, solve
from primalsvm.data import EQUAL_WEIGHTS, Batch, as_block
from primalsvm.solvers import stochastic, streams
from primalsvm.solvers.sampling import Sampler
from tests import reference
from tests.helpers import objective
from tests.reference import noisy, weights

M, D, LAM = 40, 6, 0.05
X, Y = noisy(M, D)
X[:, 0] += 0.7


def algorithm_1(V, y, lam, indices, n_bar, intercept=True, star=False, D_X=None, D_G=None, B=None, c=None):
    """Algorithm 1 with the slips mended: returns all iterates (γʲ, bʲ), j ≥ 1, and the average (27)."""
    R = np.linalg.norm(V, axis=1).max()
    B = (B or 1 + R / math.sqrt(lam)) if intercept else 0.0
    D_X = D_X or math.sqrt(1 / lam + B**2)
    D_G = D_G or math.sqrt(np.mean(np.sum(V**2, axis=1) + intercept))
    c = np.ones(len(y)) if c is None else c / c.mean()
    gamma, b = np.zeros(V.shape[1]), 0.0
    average, average_b, eta_sum = np.zeros(V.shape[1]), 0.0, 0.0
    iterates = []
    for j, xi in enumerate(indices, start=1):
        eta = 1 / (lam * j) if star else D_X / (D_G * math.sqrt(j))
        d = -1.0 if y[xi] * (V[xi] @ gamma + b) < 1 else 0.0
        gamma = (1 - eta * lam) * gamma - eta * d * c[xi] * y[xi] * V[xi]
        if (norm := np.linalg.norm(gamma)) > 1 / math.sqrt(lam):
            gamma = gamma / (norm * math.sqrt(lam))
        if intercept:
            b = float(np.clip(b - eta * d * c[xi] * y[xi], -B, B))
        iterates.append((gamma, b))
        if j >= n_bar:
            average = eta_sum / (eta_sum + eta) * average + eta / (eta_sum + eta) * gamma
            average_b = eta_sum / (eta_sum + eta) * average_b + eta / (eta_sum + eta) * b
            eta_sum += eta
    return iterates, (average, average_b)


@pytest.fixture
def draws(monkeypatch):
    def fix(order):
        left = [np.asarray(order, np.uint64).ravel()]

        def draw(self, n):
            rows, left[0] = left[0][:n], left[0][n:]
            return rows

        monkeypatch.setattr(Sampler, "draw", draw)

    return fix


def indices_of(n, seed=0):
    return np.random.default_rng(seed).integers(M, size=n)


def run(problem, X=X, c=None, **options):
    return solve(problem, X, Y, sample_weight=c, solver=Asset(**options), certify=False)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize(("intercept", "star"), [(True, False), (False, False), (False, True)])
def test_equals_algorithm_1(draws, intercept, star, convert):
    indices = indices_of(400)
    problem = Problem(Hinge(), LAM, "free" if intercept else "none")
    for n in (1, 2, 3, 50, 400):
        n_bar = math.ceil(0.3 * n)
        iterates, (gamma, b) = algorithm_1(X, Y, LAM, indices[:n], n_bar, intercept, star)
        draws(indices)
        found = run(problem, convert(X), n_iter=n, average_from=0.3, strongly_convex=star, M=M)
        np.testing.assert_allclose(found.w, gamma, rtol=1e-10, atol=1e-10)
        assert found.b == pytest.approx(b, abs=1e-10)
        draws(indices)
        last = run(problem, convert(X), n_iter=n, average_from=None, strongly_convex=star, M=M)
        np.testing.assert_allclose(last.w, iterates[-1][0], rtol=1e-10, atol=1e-10)
        assert last.b == pytest.approx(iterates[-1][1], abs=1e-10)


def test_the_last_hundred_iterations(draws):
    indices = indices_of(300)
    draws(indices)
    found = run(Problem(Hinge(), LAM, "free"), n_iter=300, average_last=100, M=M)
    _, (gamma, b) = algorithm_1(X, Y, LAM, indices, 300 - 100)
    np.testing.assert_allclose(found.w, gamma, rtol=1e-10, atol=1e-10)
    assert found.b == pytest.approx(b, abs=1e-10)


def test_given_constants_and_weights(draws):
    indices, c = indices_of(200), weights(M)
    draws(indices)
    found = run(Problem(Hinge(), LAM, "free"), c=c, n_iter=200, average_from=0.5, D_X=3.0, D_G=2.0, B=0.25)
    iterates, (gamma, b) = algorithm_1(X, Y, LAM, indices, 100, D_X=3.0, D_G=2.0, B=0.25, c=c)
    assert any(abs(bound) == 0.25 for _, bound in iterates)  # the interval was felt
    np.testing.assert_allclose(found.w, gamma, rtol=1e-10, atol=1e-10)
    assert found.b == pytest.approx(b, abs=1e-10)


def test_the_ball_is_felt(draws):
    indices = indices_of(200)
    iterates, _ = algorithm_1(X, Y, LAM, indices, 100)
    norms = [np.linalg.norm(gamma) for gamma, _ in iterates]
    assert max(norms) == pytest.approx(1 / math.sqrt(LAM))


def test_asset_star_without_average_is_pegasos_with_projection(draws):
    indices = indices_of(300)
    draws(indices)
    star = run(Problem(Hinge(), LAM), n_iter=300, average_from=None, strongly_convex=True)
    draws(indices)
    solver = Pegasos(n_iter=300, average="last", projection=True)
    pegasos = solve(Problem(Hinge(), LAM), X, Y, solver=solver, certify=False)
    np.testing.assert_allclose(star.w, pegasos.w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), SquaredHinge()], ids=lambda loss: type(loss).__name__)
def test_the_certificate_holds(loss, intercept):
    problem = Problem(loss, LAM, intercept)
    best = solve(problem, X, Y).certificate
    found = solve(problem, X, Y, solver=Asset(n_iter=20_000))
    assert found.certificate.dual <= best.primal and best.dual <= found.certificate.primal
    assert found.certificate.primal == pytest.approx(reference.primal(problem, X, Y, found.w, found.b), rel=1e-12)
    if not isinstance(loss, SquaredHinge):  # whose safe step is tiny
        assert found.certificate.relative_gap <= 0.05


def test_runs_until_the_accuracy_is_reached():
    found = solve(Problem(Hinge(), LAM, "free"), X, Y, solver=Asset(), tol=1e-2, max_iter=4000)
    assert found.status.value == "converged" and found.certificate.relative_gap <= 1e-2
    windowed = solve(Problem(Hinge(), LAM, "free"), X, Y, solver=Asset(average_last=100), tol=1e-2, max_iter=4000)
    assert windowed.certificate.relative_gap <= 1e-2


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("options", [{"average_from": 0.5}, {"average_last": 7}, {"average_from": None}])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
def test_a_stream_leaves_the_same_bits_however_it_is_cut(convert, options, k):
    solver = Asset(batch_size=k, **options)
    rows, y = convert(np.vstack([X] * 3)), np.tile(Y, 3)
    first = objective(Problem(Hinge(), LAM, "free"), rows, y)
    settings = solver.settings(first, np.array([2.0]))
    outputs = []
    for cuts in ([], [1, 2, 3], [50], [10, 20, 30, 40, 41, 90]):
        state = stochastic.begin(solver.run_options, settings, first)
        edges = [0, *cuts, 120]
        for a, b in itertools.pairwise(edges):
            state = streams.absorb(Hinge(), Batch(as_block(rows[a:b]), y[a:b], EQUAL_WEIGHTS), state)
        w, b = stochastic.output(state)
        outputs.append((w.tobytes(), b, state.steps))
    assert len(set(outputs)) == 1 and outputs[0][2] == 120 // k


def test_a_stream_averages_one_to_two_windows():
    solver, first = Asset(average_last=7, D_X=3.0, D_G=2.0), objective(Problem(Hinge(), LAM, "free"), X, Y)
    state = stochastic.begin(solver.run_options, solver.settings(first, np.ones(1)), first)
    state = streams.absorb(Hinge(), Batch(as_block(X), Y, EQUAL_WEIGHTS), state)
    iterates, _ = algorithm_1(X, Y, LAM, np.arange(M), 1, D_X=3.0, D_G=2.0, B=1 + 1 / math.sqrt(LAM))
    kept = range(28, 41)  # buckets begin with iterates 28, 35, 42, …: the previous one and the present one
    etas = [3.0 / (2.0 * math.sqrt(j)) for j in kept]
    truth = np.average([iterates[j - 1][0] for j in kept], axis=0, weights=etas)
    np.testing.assert_allclose(stochastic.output(state)[0], truth, rtol=1e-9, atol=1e-10)


def test_refusals():
    with pytest.raises(ValueError, match="no free intercept"):
        solve(Problem(Hinge(), LAM, "free"), X, Y, solver=Asset(strongly_convex=True))
    for bad in ({"n_iter": 0}, {"batch_size": 0}, {"average_last": 0}, {"D_G": -1.0}, {"average_from": 1.0}, {"M": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Asset(**bad)
    with pytest.raises(TypeError, match="integer"):
        Asset(n_iter=1.5)
    with pytest.raises(ValueError, match="sampling"):
        Asset(sampling="random")
