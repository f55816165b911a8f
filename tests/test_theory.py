"""The bounds: each against the ones it is made of, and against what Pegasos and ASSET do."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from primalsvm import Asset, Hinge, Pegasos, Problem, solve, theory
from primalsvm.data import ALONE, EQUAL_WEIGHTS, KernelMatrix, as_block
from primalsvm.maps.kernels import Linear, as_points
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.stops import Stops
from primalsvm.solvers.watched import Watched
from tests.helpers import solution_of
from tests.reference import noisy, primal

lams = st.floats(1e-6, 1.0)
lengths = st.floats(0.1, 10.0)
shares = st.floats(1e-6, 0.3)
steps = st.integers(30, 10**9)


# ---- what follows from what ------------------------------------------------------------------------------------------


@given(lams, steps, lengths, st.booleans())
def test_theorem_1_is_lemma_1_with_pegasos_gradients(lam, T, R, projection):
    G = math.sqrt(lam) + R if projection else 2 * R
    assert theory.gradient_bound(lam, R, projection) == pytest.approx(G)
    assert theory.theorem_1(lam, T, R, projection) >= theory.lemma_1(lam, T, G) * (1 - 1e-12)
    assert theory.theorem_1(lam, T, R, projection) == pytest.approx(G**2 * math.log(T) / (lam * T))


@given(lams, steps, lengths, shares)
def test_theorem_3_6_as_it_is_written(lam, T, R, delta):
    log, root = math.log(1 / delta), math.sqrt(1 + math.log(T))
    written = (
        2 * R**2 * (1 + math.log(T)) / (lam * T)
        + 8 * R**2 * root / (lam * T) * math.sqrt(log)
        + max(32 * R**2 / lam, 9 * R**2 / lam + 6) * log / T
    )
    assert theory.theorem_3_6(lam, T, delta, R) == pytest.approx(written)


@given(lams, steps, lengths, shares)
def test_theorem_3_3_solves_for_the_excess(lam, T, L, delta):
    """D = R + max{2√(2L²D/λ), 6B √ln} √ln has its root below the bound."""
    regret, B = theory.theorem_3_4(lam, T, L), theory.value_bound(lam, L / 2)
    excess = T * theory.theorem_3_3(regret, lam, T, L, B, delta)
    sigma = math.sqrt(theory.lemma_3_1(lam, L, excess))
    assert excess >= (regret + theory.lemma_3_2(sigma, 2 * B, delta)) * (1 - 1e-9)


@given(st.integers(2, 10**6), st.floats(0.01, 0.95))
def test_the_constant_of_asset(N, rho):
    """(2 D_X² + ½ D_G² Σ η²)/Σ η over N̄ … N, with η = D_X/(D_G √t), is what the proof ends with."""
    first = math.ceil(rho * N)
    t = np.unique(np.linspace(first, N, 2000).astype(int))
    if t.shape[0] == N - first + 1:  # all of them
        eta = 3.0 / (0.5 * np.sqrt(t))
        assert (2 * 9.0 + 0.125 * np.sum(eta**2)) / np.sum(eta) <= theory.asset_theorem_1(3.0, 0.5, N, rho) * (1 + 1e-9)
    many = 10**9
    written = theory.asset_constant(rho) * 1.5 / math.sqrt(math.ceil(rho * many))
    assert theory.asset_theorem_1(3.0, 0.5, many, rho) == pytest.approx(written, rel=1e-6)


@given(lams, st.floats(1e-3, 10.0), st.one_of(st.none(), shares), lengths, st.booleans())
def test_a_plan_asks_for_the_fewest_steps_that_suffice(lam, epsilon, delta, R, projection):
    found = theory.plan(lam, epsilon, delta, R, projection)

    def bound(T):
        if delta is None:
            return theory.theorem_2(lam, T, R, projection)
        if found.tries == 1:
            return theory.theorem_3(lam, T, delta, R, projection)
        return theory.many_tries(lam, T, delta, R, projection)

    assert bound(found.iterations) == found.bound <= epsilon
    least = 3 * found.tries
    assert found.iterations == least or bound(found.iterations - 1) > epsilon
    assert theory.plan(lam, 2 * epsilon, delta, R, projection).iterations <= found.iterations


def test_refusals():
    for call in (
        lambda: theory.lemma_1(0.0, 10, 1.0),
        lambda: theory.theorem_1(0.1, 2),
        lambda: theory.theorem_3(0.1, 10, 1.5),
        lambda: theory.lemma_3_2(1.0, 1.0, 0.5),
        lambda: theory.plan(0.1, -1.0),
        lambda: theory.plan(1e-20, 1e-20),
        lambda: theory.asset_constant(1.0),
        lambda: Pegasos(n_iter="theory"),
        lambda: Pegasos(epsilon=0.1),
        lambda: Pegasos(n_iter="enough"),
        lambda: solve(Problem(Hinge(), 0.1, "free"), np.eye(2), [1, -1], solver=Pegasos(n_iter="theory", epsilon=1.0)),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()


# ---- what the algorithms do ------------------------------------------------------------------------------------------

LAM = 0.05
X, Y = noisy(400, 5, seed=2, flip=0.2)
X = X / np.linalg.norm(X, axis=1).max()  # R = 1
PROBLEM = Problem(Hinge(), LAM)
BEST = solve(PROBLEM, X, Y, tol=1e-10).certificate.dual
SEEDS = range(100)


def excess(solver, seed):
    found = solve(PROBLEM, X, Y, solver=solver, random_state=seed, tol=1e6)
    return primal(PROBLEM, X, Y, found.w) - BEST


@pytest.mark.parametrize("projection", [True, False])
def test_no_bound_of_pegasos_is_violated_more_often_than_it_says(projection):
    T, delta = 300, 0.2
    common = {"n_iter": T, "sampling": "iid", "projection": projection}
    averages = [excess(Pegasos(**common, average="uniform"), seed) for seed in SEEDS]
    assert np.mean(averages) <= theory.theorem_2(LAM, T, 1.0, projection)
    randoms = np.array([excess(Pegasos(**common, average="random"), seed) for seed in SEEDS])
    assert np.mean(randoms) <= theory.theorem_2(LAM, T, 1.0, projection)
    assert np.mean(randoms > theory.theorem_3(LAM, T, delta, 1.0, projection)) <= delta
    s = theory.tries(delta)
    best = np.array([excess(Pegasos(**common, average="random", tries=s), seed) for seed in SEEDS])
    assert np.mean(best > theory.many_tries(LAM, T, delta, 1.0, projection)) <= delta
    whole = Pegasos(n_iter=50, batch_size=400, sampling="distinct", projection=projection, average="uniform")
    assert excess(whole, 0) <= theory.corollary_1(LAM, 50, 1.0, projection)


def test_the_bound_of_asset_holds():
    problem = Problem(Hinge(), LAM, "free")
    best = solve(problem, X, Y, tol=1e-10).certificate.dual
    N, B = 400, 2.0
    D_X, D_G = math.hypot(1 / math.sqrt(LAM), B), math.sqrt(LAM) + math.sqrt(2.0)  # a true bound over all of X
    solver = Asset(n_iter=N, sampling="iid", D_X=D_X, D_G=D_G, B=B)
    found = [solve(problem, X, Y, solver=solver, random_state=seed, tol=1e6) for seed in SEEDS]
    mean = np.mean([one.certificate.primal for one in found]) - best
    assert mean <= theory.asset_theorem_1(D_X, D_G, N, 0.5)


@pytest.mark.parametrize(("delta", "average"), [(None, "uniform"), (0.1, "random")])
def test_pegasos_takes_as_many_steps_as_theory_asks_for(delta, average):
    epsilon = 0.4
    solver = Pegasos(n_iter="theory", epsilon=epsilon, delta=delta, projection=True)
    found = solve(PROBLEM, X, Y, solver=solver, tol=1e6)
    planned = theory.plan(LAM, epsilon, delta, 1.0, True)
    plan = found.state.options
    assert found.n_steps == planned.iterations and plan.average == average
    assert plan.tries == planned.tries and plan.sampling == "iid"
    assert primal(PROBLEM, X, Y, found.w) - BEST <= epsilon


def test_theory_is_asked_whatever_pegasos_is_wrapped_in():
    options = {"epsilon": 0.4, "delta": 0.1, "projection": True}
    steps = theory.plan(LAM, 0.4, 0.1, 1.0, True).iterations
    pegasos = Pegasos(n_iter="theory", **options)
    plain = solve(PROBLEM, X, Y, solver=pegasos, tol=1e6)
    watched = solve(PROBLEM, X, Y, solver=Watched(pegasos, (1, 5)), tol=1e6)
    matrix = KernelMatrix(Linear(), as_block(X), as_points(X), 1e9, EQUAL_WEIGHTS, ALONE)
    kernel = solution_of(PROBLEM.on(matrix, Y), KernelPegasos(pegasos), Stops(tol=1e6))
    assert plain.n_steps == watched.n_steps == kernel.n_steps == steps
    np.testing.assert_array_equal(watched.w, plain.w)
    assert len(plain.trace) == 1 < len(watched.trace)
    np.testing.assert_allclose(X.T @ kernel.w, plain.w, rtol=1e-8, atol=1e-9)


def by_hand(T, seed, factor=1.0):
    """The iterates of Pegasos with steps of factor/(λt)."""
    rng = np.random.default_rng(seed)
    w, found = np.zeros(X.shape[1]), []
    for t in range(1, T + 1):
        found.append(w)
        i, eta = rng.integers(len(Y)), factor / (LAM * t)
        w = (1 - eta * LAM) * w + eta * (Y[i] * (X[i] @ w) < 1) * Y[i] * X[i]
    return np.array(found)


def regret_ratio(factor, T=300, seeds=20):
    """Mean excess of the iterates over the bound of Theorem 2 without projection."""
    means = [
        np.mean([primal(PROBLEM, X, Y, w) - BEST for w in by_hand(T, seed, factor)[:: T // 50]])
        for seed in range(seeds)
    ]
    return np.mean(means) / theory.theorem_2(LAM, T, 1.0, projection=False)


def test_the_bounds_have_teeth():
    """Steps eight times as long break Theorem 2."""
    assert regret_ratio(1.0) < 1.0 < regret_ratio(8.0)


# ---- the claims about growth -----------------------------------------------------------------------------------------

WEAK = Problem(Hinge(), 1e-3)


def sample(m, d=20):
    """Rows from one distribution, however many."""
    rng, truth = np.random.default_rng(m), np.random.default_rng(99).normal(size=d)
    rows = rng.normal(size=(m, d)).astype(np.float32) / math.sqrt(d)
    noise = 0.5 * rng.normal(size=m)
    return rows, np.where(math.sqrt(d) * rows @ (truth / np.linalg.norm(truth)) + noise > 0, 1.0, -1.0)


def averaged(rows, labels, T, seed):
    solver = Pegasos(n_iter=T, sampling="iid", average="weighted")
    return solve(WEAK, rows, labels, solver=solver, random_state=seed, certify=False).w


def steps_to(epsilon, m):
    """The median over seeds of the steps after which P(w) − P* ≤ ε."""
    rows, labels = sample(m)
    best = solve(WEAK, rows, labels, tol=1e-6, solver="newton").certificate.dual
    grid = [int(1000 * 1.15**k) for k in range(45)]
    found = []
    for seed in range(7):
        enough = (T for T in grid if primal(WEAK, rows, labels, averaged(rows, labels, T, seed)) - best <= epsilon)
        found.append(next(enough))
    return np.median(found)


def test_steps_to_an_accuracy_do_not_depend_on_the_number_of_rows():
    found = [steps_to(0.005, m) for m in (10**4, 10**5, 10**6)]
    assert max(found) <= 1.5 * min(found)


def test_the_error_falls_at_least_as_fast_as_promised():
    rows, labels = sample(10**5)
    best = solve(WEAK, rows, labels, tol=1e-8, solver="newton").certificate.dual
    steps_taken = [2000 * 2**k for k in range(7)]
    errors = [
        np.mean([primal(WEAK, rows, labels, averaged(rows, labels, T, seed)) - best for seed in range(10)])
        for T in steps_taken
    ]
    assert np.polyfit(np.log(steps_taken), np.log(errors), 1)[0] <= -0.85
