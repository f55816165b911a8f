"""Newton: the optimum that other people's solvers find, on tame and on badly scaled problems."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import DualAscent, Hinge, Logistic, Problem, SquaredHinge, Status, solve
from primalsvm.data import ALONE, EQUAL_WEIGHTS, Dense, InMemory, OutOfCore, Whitened, as_block
from primalsvm.solvers import costs, curvature
from primalsvm.solvers.curvature import Curvature
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.protocol import Point, Run
from primalsvm.solvers.stops import Stops
from tests import reference
from tests.helpers import objective, solution_of
from tests.reference import noisy, sparse_noisy
from tests.solvers.test_dual_ascent import LAM, M, X, Y, best_value, each_intercept, each_loss, each_weight


def newton(*arguments, **options):
    return solve(*arguments, solver=Newton(), **options)


@each_loss
@each_intercept
@each_weight
def test_reaches_the_optimum_of_other_solvers(loss, intercept, c):
    problem = Problem(loss, LAM, intercept)
    best = best_value(problem, c)
    found = newton(problem, X, Y, sample_weight=c)
    primal = reference.primal(problem, X, Y, found.w, found.b, c)
    assert found.status is Status.CONVERGED and found.certificate.relative_gap <= 1e-10
    assert found.certificate.primal == pytest.approx(primal, rel=1e-13)
    assert found.certificate.dual <= best * (1 + 1e-12)
    assert best * (1 - 1e-6) <= primal <= best * (1 + 1e-9)


@each_intercept
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_more_features_than_rows(loss, intercept, convert):
    S, y = sparse_noisy(30, 80)
    problem = Problem(loss, LAM, intercept)
    found = newton(problem, convert(S.toarray()), y)
    assert found.status is Status.CONVERGED and found.certificate.relative_gap <= 1e-10
    primal = reference.primal(problem, S.toarray(), y, found.w, found.b)
    assert found.certificate.primal == pytest.approx(primal, rel=1e-12)


@each_loss
@each_intercept
@pytest.mark.parametrize("lam", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("separable", [False, True])
def test_whatever_the_scale(loss, intercept, lam, scale, separable):
    data = scale * (X + (3 * np.outer(Y, np.eye(X.shape[1])[0]) if separable else 0))
    found = newton(Problem(loss, lam, intercept), data, Y)
    rounding = 1e-16  # of a mean of losses around 1 − z with z near 1: P itself may be as small as 1e-11 here
    assert found.status is Status.CONVERGED, found.message
    assert found.certificate.gap <= max(1e-8 * found.certificate.primal, rounding), found.message


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("strength", [1e-4, 1e-2, 1.0, 100.0])
def test_standardised_noisy_data_from_strong_to_weak_regularisation(seed, strength):
    data, y = noisy(133, 5, seed=seed)
    data = (data - data.mean(axis=0)) / data.std(axis=0)
    found = newton(Problem(Hinge(), 1 / (strength * 133), "free"), data, y)
    assert found.certificate.relative_gap <= 1e-10, found.message


@each_intercept
def test_rows_of_zeros_and_features_of_zeros(intercept):
    empty = X.copy()
    empty[::2] = 0.0
    empty[:, 3] = 0.0
    found = newton(Problem(Hinge(), LAM, intercept), empty, Y)
    assert found.certificate.relative_gap <= 1e-10 and found.w[3] == 0.0


@pytest.mark.parametrize("shares", [(M - 5, 5), (M - 1, 1)])
@each_intercept
def test_lopsided_classes(shares, intercept):
    found = newton(Problem(Hinge(), LAM, intercept), X, np.repeat([-1.0, 1.0], shares))
    assert found.certificate.relative_gap <= 1e-10, found.message


@each_intercept
def test_a_warm_start_takes_fewer_steps(intercept):
    problem = Problem(Hinge(), LAM, intercept)
    cold = newton(problem, X, Y)
    again = newton(problem, X, Y, start=cold)
    assert again.certificate.relative_gap <= 1e-10 and again.n_steps < cold.n_steps


def test_single_precision_data_are_solved_in_double():
    data, y = noisy(20_000, 10, seed=5)
    data = data.astype(np.float32)
    problem = Problem(Hinge(), 1e-4, "free")
    found = newton(problem, data, y, tol=1e-8, n_jobs=2)
    assert found.status is Status.CONVERGED and 0 <= found.certificate.relative_gap <= 1e-8
    assert found.certificate.primal == pytest.approx(
        reference.primal(problem, data.astype(float), y, found.w, found.b), rel=1e-12
    )


@pytest.mark.parametrize("strength", [1e4, 1e6])
def test_goes_on_while_the_gap_falls_though_the_inner_problem_is_solved(strength):
    """A huge constant column makes q stay large: every new α helps a little, and none may be the last too early."""
    data, y = noisy(300, 5)
    data = np.hstack([data, np.full((300, 1), 1000.0)])
    found = solve(Problem(Hinge(), 1 / (strength * 300), "free"), data, y, solver=Newton(), max_iter=3000)
    assert found.certificate.relative_gap <= 1e-3, found.message


# ---- many rows: first steps on a sample, rows kept apart from what they are multiplied with --------------------------


@pytest.fixture
def sampling(monkeypatch):
    monkeypatch.setattr(costs, "SAMPLE_ENTRIES", 1000)


@each_loss
@each_intercept
@each_weight
def test_beginning_on_a_sample_ends_at_the_same_optimum(sampling, loss, intercept, c):
    data, y = noisy(3000, 6, seed=2)
    c = None if c is None else np.tile(c, 3000 // M + 1)[:3000]
    problem = Problem(loss, 1e-3, intercept)
    found = newton(problem, data, y, sample_weight=c)
    assert found.n_epochs < found.n_steps  # some steps were taken on fewer rows
    best = solve(problem, data, y, sample_weight=c, solver=DualAscent(), tol=1e-7, max_iter=10_000).certificate
    assert found.certificate.relative_gap <= 1e-10
    assert best.dual <= found.certificate.primal * (1 + 1e-9) and found.certificate.dual <= best.primal * (1 + 1e-9)


def test_stopped_on_the_sample_it_is_certified_on_all_rows(sampling):
    data, y = noisy(3000, 6, seed=2)
    problem = Problem(Hinge(), 1e-3, "free")
    best = newton(problem, data, y).certificate.primal
    state_of = solve(problem, data, y, solver=Newton(), max_seconds=1e-9)
    assert state_of.state.sample is not None and state_of.status is Status.MAX_SECONDS
    primal = reference.primal(problem, data, y, state_of.w, state_of.b)
    assert state_of.certificate.primal == pytest.approx(primal, rel=1e-12)
    assert state_of.certificate.dual <= best <= primal


def test_rows_so_long_that_q_stays_large_leave_the_sample(sampling):
    data, y = noisy(3000, 6, seed=2)
    found = solve(Problem(Hinge(), 1e-6, "free"), 1.3e4 * data, y, solver=Newton(), tol=1e-3, max_iter=500)
    assert found.state.sample is None and found.certificate.relative_gap <= 1e-3, found.message


def test_hopelessly_scaled_features_end_no_worse_than_they_began():
    data, y = noisy(3000, 6, seed=2)
    data[:, 0] = 1.6e9 + 1e8 * np.random.default_rng(0).random(3000)  # a time in seconds
    found = solve(Problem(Hinge(), 1 / 3000, "free"), data, y, solver=Newton(), max_iter=100)
    assert found.certificate.primal <= 1.0, found.message


def test_a_sample_of_one_class_is_not_used(sampling):
    data, y = noisy(3000, 6, seed=2)
    y = np.where(np.arange(3000) == 1234, 1.0, -1.0)
    found = newton(Problem(Hinge(), 1e-3, "free"), data, y)
    assert found.certificate.relative_gap <= 1e-10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whitened_rows_are_solved_as_their_products(sampling, dtype):
    data, y = noisy(3000, 6, seed=2)
    whitening = np.random.default_rng(1).normal(size=(6, 5)).astype(dtype)
    rows = Whitened(Dense(data.astype(dtype)), whitening, EQUAL_WEIGHTS, ALONE)
    problem = Problem(Hinge(), 1e-3, "free")
    found = solution_of(problem.on(rows, y), Newton(), Stops(1e-8), seed=0)
    product = data.astype(dtype).astype(float) @ whitening.astype(float)
    best = newton(problem, product, y)
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-8)
    assert found.certificate.primal == pytest.approx(reference.primal(problem, product, y, found.w, found.b), rel=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_curvature_is_brought_up_to_date_by_the_rows_that_changed(dtype):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(500, 4)).astype(dtype)
    rows, g = objective(Problem(Hinge(), 0.1, "free"), data, np.ones(500)), rng.normal(size=4)
    curvature = Curvature.of(rows.data)
    wide = np.hstack([data.astype(float), np.ones((500, 1))])
    h = np.zeros(500)
    for share in (0.5, 0.1, 0.9, 0.02):
        moving = rng.random(500) < share
        h[moving] = np.where(rng.random(moving.sum()) < 0.5, 0.0, 3.0)
        step, step_b = curvature.step(rows, h, np.count_nonzero(h), g, 0.3)
        hessian = wide.T @ (h[:, None] * wide) / 500 + np.diag([0.1] * 4 + [0.0])
        expected = -np.linalg.solve(hessian, np.append(g, 0.3))
        np.testing.assert_allclose(np.append(step, step_b), expected, rtol=1e-4 if dtype == np.float32 else 1e-10)


class ArrayReader:
    """Rows of an array, read into the same memory each time."""

    entry_bytes, bytes_at_once, sparse, checksum, dtype = 8, 1e6, False, "", np.dtype(float)

    def __init__(self, data):
        self.data, self.shape, self.entries = data, data.shape, data.size
        self.memory = np.empty(data.shape)

    def read(self, numbers):
        out = self.memory[: len(numbers)]
        out[:] = self.data[numbers]
        return Dense(out)

    def allocate(self, m):
        return np.zeros(m)


def test_rows_that_are_read_in_blocks(sampling):
    data, y = noisy(3000, 6, seed=2)
    problem = Problem(Hinge(), 1e-3, "free")
    rows = OutOfCore(ArrayReader(data), EQUAL_WEIGHTS, ALONE)
    rows.rows_at_once = 700
    found = solution_of(problem.on(rows, y), Newton())
    best = newton(problem, data, y)
    assert found.n_steps == best.n_steps and found.n_epochs < found.n_steps
    assert found.certificate.relative_gap <= 1e-10
    np.testing.assert_allclose(found.w, best.w, rtol=1e-9)


class Unnumbered(InMemory):
    """Rows that cannot be taken one by one."""

    numbered = False

    def refuse(self, *arguments):
        raise AssertionError("these rows have no numbers")

    take = subset = find = get = put = products = refuse


@pytest.mark.parametrize(("m", "d"), [(3000, 6), (30, 80)])
def test_rows_without_numbers_are_neither_sampled_nor_copied(sampling, m, d):
    data, y = noisy(m, d, seed=2)
    problem = Problem(Hinge(), 1e-3, "free")
    found = solution_of(problem.on(Unnumbered(as_block(data), EQUAL_WEIGHTS), y), Newton())
    assert found.n_epochs == found.n_steps and found.certificate.relative_gap <= 1e-10
    assert found.certificate.primal == pytest.approx(newton(problem, data, y).certificate.primal, rel=1e-9)


@pytest.mark.parametrize("kind", [InMemory, Unnumbered])
@each_intercept
def test_systems_too_large_for_a_factor(kind, intercept, monkeypatch):
    monkeypatch.setattr(curvature, "LARGEST_FACTOR", 5)
    monkeypatch.setattr(InMemory, "gram", Unnumbered.refuse)
    data, y = noisy(300, 40)
    problem = Problem(Hinge(), 1e-2, intercept)
    found = solution_of(problem.on(kind(as_block(data), EQUAL_WEIGHTS), y), Newton(), Stops(1e-6))
    assert found.certificate.relative_gap <= 1e-6
    assert found.certificate.primal == pytest.approx(reference.primal(problem, data, y, found.w, found.b), rel=1e-12)


# ---- states ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 10])
def test_a_state_that_was_pickled_goes_on_to_the_same_bits(sampling, steps):
    """On a sample, and on all rows; an evaluation changes nothing."""
    data, y = noisy(3000, 6, seed=2)
    rows, solver = objective(Problem(Hinge(), 1e-4, "free"), data, y), Newton()
    state = solver.start(rows, Run(1e-8, True, 100, 0))
    for _ in range(steps):
        state = solver.advance(rows, state)
    assert (state.sample is None) == (steps == 10)
    kept = pickle.dumps(state)
    assert (len(kept) < 10 * data.nbytes) and solver.evaluate(rows, state).primal > 0.0
    assert pickle.dumps(state) == kept
    again = pickle.loads(kept)
    for _ in range(3):
        state, again = solver.advance(rows, state), solver.advance(rows, again)
    assert state.w.tobytes() == again.w.tobytes() and state.gap == again.gap


def test_what_can_be_computed_again_is_not_kept():
    found = newton(Problem(Hinge(), LAM), X, Y)
    assert found.state.row_state.curvature.squares is None


def test_the_next_point_of_a_path_begins_with_a_larger_q():
    solver, rows = Newton(), objective(Problem(Hinge(), LAM, "free"), X, Y)
    last = solution_of(rows, solver).state
    previous, memory = solver.path_start(last, None, LAM / 2)
    assert memory is None and previous.q > last.q
    state = solver.start(rows.with_lam(LAM / 2), Run(1e-8, True, 100, 0), previous)
    assert (
        state.q == pytest.approx(1.0)
        and np.array_equal(state.w, last.w)
        and state.row_state.alpha is not last.row_state.alpha
    )


@each_intercept
def test_a_point_of_another_solver(intercept):
    rows, solver = objective(Problem(Hinge(), LAM, intercept), X, Y), Newton()
    found = solution_of(rows, solver)
    point = solver.hand_over(rows, found.state)
    assert point.alpha is found.state.row_state.a
    state = solver.start(rows, Run(1e-8, True, 100, 0), Point(2.0 * point.alpha, point.b))
    assert np.abs(state.row_state.alpha).max() <= 1.0 and state.q == 1.0
    assert state.b == (0.0 if intercept == "none" else point.b)
    cold = solver.start(rows, Run(1e-8, True, 100, 0), Point(np.ones(3), 1.0))
    assert not cold.w.any() and cold.b == 0.0


LARGE = """
import resource, sys
import numpy as np, scipy.sparse as sp
from primalsvm import Hinge, Newton, Problem, solve

m, d = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
indices = rng.integers(0, d, (m, 50)).astype(np.int32)
X = sp.csr_matrix((rng.normal(size=50 * m), indices.reshape(-1), np.arange(0, 50 * m + 1, 50)), shape=(m, d))
X.sum_duplicates()
y = np.sign(X @ rng.normal(size=d) + rng.normal(size=m))
solve(Problem(Hinge(), 1.0), X[:100], y[:100], solver=Newton())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = solve(Problem(Hinge(), 1.0 / m, "free"), X, y, solver=Newton())
print(found.certificate.relative_gap, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("m", "d"), [(50_000, 20_000), (20_000, 200_000)])
def test_neither_rows_nor_features_are_few(m, d):
    """Certified, without a crash of BLAS, in less memory than two of the largest factors take."""
    done = subprocess.run([sys.executable, "-c", LARGE, str(m), str(d)], capture_output=True, text=True, check=True)
    gap, gigabytes = map(float, done.stdout.split())
    assert gap <= 1e-3 and gigabytes <= 1.2
