"""Dual ascent: the optimum that other people's solvers find, whatever the options."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

from primalsvm import DualAscent, Hinge, Logistic, Problem, SmoothedHinge, SquaredHinge, Status, solve
from primalsvm.data import ALONE, EQUAL_WEIGHTS, Dense, ThreadPool, Whitened
from primalsvm.solution import relative_gap
from primalsvm.solvers.dual_ascent import improve_dual
from primalsvm.solvers.protocol import Run
from tests import reference
from tests.helpers import objective
from tests.reference import LOSSES, noisy, sparse_noisy, weights

M, D, LAM = 300, 8, 0.01
X, Y = noisy(M, D)
X[:, 0] += 0.5  # so that the intercept matters
C = weights(M)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
each_intercept = pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
each_weight = pytest.mark.parametrize("c", [None, C], ids=["plain", "weighted"])


def ascend(*arguments, max_iter=100_000, **options):
    return solve(*arguments, solver=DualAscent(), max_iter=max_iter, **options)


def other_solver(problem, c):
    """(w, b) by liblinear, libsvm or scikit-learn's logistic regression; None where none of them has the problem."""
    strength = 1 / (problem.lam * (M if c is None else c.sum()))
    loss, intercept = problem.loss, problem.intercept
    if isinstance(loss, Logistic) and intercept != "penalized":
        other = LogisticRegression(C=strength, tol=1e-12, max_iter=10_000, fit_intercept=intercept == "free")
    elif isinstance(loss, Hinge) and intercept == "free":
        other = SVC(kernel="linear", C=strength, tol=1e-6)
    elif isinstance(loss, Hinge | SquaredHinge) and intercept != "free":
        name = "hinge" if isinstance(loss, Hinge) else "squared_hinge"
        fit_intercept = intercept == "penalized"
        other = Liblinear(C=strength, loss=name, tol=1e-10, max_iter=10**7, fit_intercept=fit_intercept, dual=True)
    else:
        return None
    other.fit(X, Y, c)
    return other.coef_[0], float(np.ravel(other.intercept_)[0])


def best_value(problem, c):
    """P* by another solver: liblinear and friends, or a quasi-Newton method for smooth losses."""
    point = other_solver(problem, c)
    return reference.minimum(problem, X, Y, c) if point is None else reference.primal(problem, X, Y, *point, c)


@each_loss
@each_intercept
@each_weight
def test_reaches_the_optimum_of_other_solvers(loss, intercept, c):
    problem = Problem(loss, LAM, intercept)
    best = best_value(problem, c)
    found = ascend(problem, X, Y, sample_weight=c)
    primal = reference.primal(problem, X, Y, found.w, found.b, c)
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(primal, rel=1e-13)
    assert found.certificate.dual <= best * (1 + 1e-12)  # D ≤ P*
    assert primal <= best * (1 + 1e-9)  # as good as theirs …
    assert primal >= best * (1 - 1e-6)  # … which is good
    if intercept == "none":
        assert found.b == 0.0


@each_intercept
@each_weight
def test_finds_the_same_hyperplane(intercept, c):
    problem = Problem(Hinge(), LAM, intercept)
    found = ascend(problem, X, Y, sample_weight=c)
    w, b = other_solver(problem, c)
    np.testing.assert_allclose(found.w, w, atol=2e-4)
    assert found.b == pytest.approx(b, abs=2e-3)


@each_intercept
@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_csr_and_dense_agree(loss, intercept):
    S, y = sparse_noisy(M, D)
    problem = Problem(loss, LAM, intercept)
    sparse, dense = (ascend(problem, data, y) for data in (S, S.toarray()))
    assert sparse.certificate.relative_gap <= 1e-10 and dense.certificate.relative_gap <= 1e-10
    np.testing.assert_allclose(sparse.w, dense.w, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.bool_, np.int64])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_every_dtype_is_certified(dtype, convert):
    data = (X > 0).astype(dtype) if dtype != np.float32 else X.astype(dtype)
    problem = Problem(Hinge(), LAM, "free")
    found = ascend(problem, convert(data), Y)
    assert found.w.dtype == np.float64
    primal = reference.primal(problem, data.astype(float), Y, found.w, found.b)
    assert found.certificate.primal == pytest.approx(primal, rel=1e-12)
    assert found.certificate.relative_gap <= 1e-10


# ---- a problem that is not small -------------------------------------------------------------------------------------

BIG_X, BIG_Y = noisy(20_000, 10, seed=5)


@pytest.fixture(scope="module")
def big_solutions():
    """Solutions of one problem (m·d ≥ 10⁵) by 1, 2, 3 threads, each twice."""
    problem = Problem(Hinge(), 1e-3, "free")
    return {n: [ascend(problem, BIG_X, BIG_Y, n_jobs=n, tol=1e-3) for _ in range(2)] for n in (1, 2, 3)}


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_same_threads_same_bits(big_solutions, n_jobs):
    first, second = big_solutions[n_jobs]
    assert first.w.tobytes() == second.w.tobytes() and first.b == second.b
    assert first.certificate == second.certificate and first.n_steps == second.n_steps


def test_other_threads_stay_within_the_certified_distance(big_solutions):
    solutions = [pair[0] for pair in big_solutions.values()]
    assert all(solution.status is Status.CONVERGED for solution in solutions)
    reach = [np.sqrt(2 * solution.certificate.gap / 1e-3) for solution in solutions]
    for i in range(3):
        for j in range(i):
            assert np.linalg.norm(solutions[i].w - solutions[j].w) <= reach[i] + reach[j]


@pytest.mark.parametrize("n_jobs", [2, 3])
@each_loss
def test_threads_reach_the_optimum(loss, n_jobs):
    problem = Problem(loss, LAM, "free")
    alone, together = ascend(problem, X, Y), ascend(problem, X, Y, n_jobs=n_jobs)
    assert together.certificate.relative_gap <= 1e-10
    assert together.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_single_precision_to_a_fine_tolerance(n_jobs):
    problem = Problem(Hinge(), 1e-3, "free")
    data = BIG_X.astype(np.float32)
    coarse, fine = (ascend(problem, data, BIG_Y, tol=tol, n_jobs=n_jobs) for tol in (1e-3, 1e-6))
    for found, tol in ((coarse, 1e-3), (fine, 1e-6)):
        assert found.status is Status.CONVERGED and 0 <= found.certificate.relative_gap <= tol
        primal = reference.primal(problem, data.astype(float), BIG_Y, found.w, found.b)
        assert found.certificate.primal == pytest.approx(primal, rel=1e-12)
    assert coarse.certificate.dual <= fine.certificate.primal  # D ≤ P*, across precisions


def test_shrinking_changes_the_way_but_not_the_goal():
    problem = Problem(Hinge(), 1e-4, "free")
    on, off = (solve(problem, BIG_X, BIG_Y, solver=DualAscent(shrinking=s), tol=1e-5) for s in (True, False))
    assert on.status is off.status is Status.CONVERGED
    assert abs(on.certificate.primal - off.certificate.primal) <= on.certificate.gap + off.certificate.gap
    assert on.n_steps / on.n_epochs < 0.9 * off.n_steps / off.n_epochs  # some rows were inactive


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("c", [None, weights(20_000)], ids=["plain", "weighted"])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_sweeps_over_a_working_set_keep_v_and_d_in_step_with_alpha(convert, c, n_jobs):
    solver = DualAscent()
    over_working_set = over_all = 0
    with ThreadPool(n_jobs) as threads:
        given = objective(Problem(Hinge(), 1e-4, "free"), convert(BIG_X), BIG_Y, c, threads)
        state = solver.start(given, Run(1e-6, True, 100, 0))
        while state.epoch < 30:
            state = solver.advance(given, state)
            over_working_set += state.working_set is not None
            over_all += state.working_set is None
            scale = np.abs(state.v).max()
            np.testing.assert_allclose(state.v, given.data.combine(state.alpha), rtol=1e-9, atol=1e-9 * scale)
            assert state.dual_sum == pytest.approx(given.conjugate_sum(state.alpha), rel=1e-9)
    assert over_working_set > 5 and over_all > 5


@pytest.mark.parametrize("target", [1e-3, 1e-9])
def test_an_evaluation_changes_nothing(target):
    solver, given = DualAscent(), objective(Problem(Hinge(), 1e-4, "free"), BIG_X, BIG_Y)
    state = solver.start(given, Run(target, True, 100, 0))
    while state.epoch < 5:
        state = solver.advance(given, state)
    before = pickle.dumps(state)
    first, second = (solver.evaluate(given, state) for _ in range(2))
    assert pickle.dumps(state) == before
    assert first.primal == second.primal and first.dual == second.dual and first.w.tobytes() == second.w.tobytes()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_file_sorted_by_label_converges_like_a_shuffled_one(n_jobs):
    problem = Problem(Hinge(), 1e-3)
    order = np.argsort(BIG_Y, kind="stable")
    shuffled = ascend(problem, BIG_X, BIG_Y, tol=1e-3, n_jobs=n_jobs)
    in_order = ascend(problem, BIG_X[order], BIG_Y[order], tol=1e-3, n_jobs=n_jobs)
    assert in_order.status is Status.CONVERGED
    assert in_order.n_epochs <= 2 * shuffled.n_epochs


# ---- warm starts and odd problems ------------------------------------------------------------------------------------


@each_intercept
def test_a_warm_start_takes_fewer_epochs(intercept):
    problem = Problem(Hinge(), LAM, intercept)
    cold = ascend(problem, X, Y)
    again = ascend(problem, X, Y, start=cold)
    assert again.certificate.relative_gap <= 1e-10 and again.n_epochs < cold.n_epochs / 2


@each_intercept
def test_a_warm_start_helps_the_next_lam_on_a_path(intercept):
    start = ascend(Problem(Hinge(), 1e-3, intercept), BIG_X, BIG_Y)
    near = Problem(Hinge(), 0.9e-3, intercept)
    cold, warm = (ascend(near, BIG_X, BIG_Y, start=s) for s in (None, start))
    assert warm.status is Status.CONVERGED and warm.n_steps < cold.n_steps


@each_loss
def test_a_warm_start_from_another_problem_is_as_accurate(loss):
    start = ascend(Problem(SquaredHinge(), 1e-3, "penalized"), X, Y)
    problem = Problem(loss, LAM, "free")
    found = ascend(problem, X, Y, start=start)
    assert found.certificate.relative_gap <= 1e-10
    assert found.certificate.primal == pytest.approx(ascend(problem, X, Y).certificate.primal, rel=1e-9)


def test_a_start_with_other_rows_is_a_cold_start():
    start = ascend(Problem(Hinge(), LAM), X[:100], Y[:100])
    fresh, given = (ascend(Problem(Hinge(), LAM), X, Y, start=s) for s in (None, start))
    assert fresh.w.tobytes() == given.w.tobytes()


@each_intercept
def test_weight_2_is_the_row_twice_and_0_is_no_row(intercept):
    times = np.random.default_rng(5).integers(0, 3, size=M)
    problem = Problem(SmoothedHinge(0.5), LAM, intercept)
    weighted = ascend(problem, X, Y, sample_weight=times)
    repeated = ascend(problem, np.repeat(X, times, axis=0), np.repeat(Y, times))
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-4)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9)


@each_loss
@each_intercept
def test_rows_of_zeros(loss, intercept):
    empty = X.copy()
    empty[::2] = 0.0
    problem = Problem(loss, LAM, intercept)
    found = ascend(problem, empty, Y)
    assert found.certificate.relative_gap <= 1e-10
    assert found.certificate.primal == pytest.approx(reference.primal(problem, empty, Y, found.w, found.b), rel=1e-13)


@each_intercept
def test_nothing_but_zeros(intercept):
    problem = Problem(Hinge(), LAM, intercept)
    found = ascend(problem, np.zeros((4, 2)), [1, 1, 1, -1])
    assert (found.w == 0).all() and found.status is Status.CONVERGED
    best = {"none": 1.0, "free": 0.5}.get(intercept)
    assert best is None or found.certificate.primal == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("lam", [1e-6, 1e3])
@each_intercept
def test_extreme_regularisation(lam, intercept):
    separable = X + 3 * np.outer(Y, np.eye(D)[0])
    found = ascend(Problem(Hinge(), lam, intercept), separable, Y)
    assert found.status is Status.CONVERGED and found.certificate.relative_gap <= 1e-10


@pytest.mark.parametrize("shares", [(95, 5), (99, 1)])
def test_lopsided_classes(shares):
    y = np.repeat([-1.0, 1.0], shares)
    problem = Problem(Hinge(), LAM, "free")
    found = ascend(problem, X[:100], y)
    other = SVC(kernel="linear", C=1 / (LAM * 100), tol=1e-6).fit(X[:100], y)
    best = reference.primal(problem, X[:100], y, other.coef_[0], float(other.intercept_[0]))
    assert found.certificate.primal <= best * (1 + 1e-9) and found.certificate.dual <= best * (1 + 1e-12)
    assert found.certificate.primal >= best * (1 - 1e-6)


@pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
def test_strong_regularisation_takes_a_sweep_and_no_more(intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20)) / np.sqrt(20)
    y = np.where(rng.random(20_000) < 0.1, 1.0, -1.0)  # one in ten: the best constant is −1
    found = solve(Problem(Hinge(), 0.5, intercept), X, y, solver=DualAscent())
    assert found.n_epochs == 1 and len(found.trace) == 1 and found.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("intercept", ["none", "penalized"])
@pytest.mark.parametrize("kept", [1.0, 0.1])  # share of rows that count
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_first_sweep_knows_how_good_it_was(scale, kept, intercept):
    rng = np.random.default_rng(0)
    X, y = noisy(40_000, 20)
    c = rng.uniform(0.5, 2.0, size=40_000) * (rng.random(40_000) < kept)
    lam = 0.01 * (scale**2 + (intercept == "penalized")) / kept
    given, solver = objective(Problem(SmoothedHinge(0.5), lam, intercept), scale * X, y, c), DualAscent()
    state = solver.start(given, Run(1e-9, True, 100, 0))
    while state.epoch < 1:
        state = solver.advance(given, state)
    point = solver.evaluate(given, state)
    assert state.rough and 0.5 <= relative_gap(point.primal, point.dual) / state.estimate <= 6.0


def test_threads_whose_first_rows_all_have_weight_zero():
    m = 100_000
    c = np.zeros(m)
    c[[10, m - 10]] = 1.0
    values = np.ones((m, 1))
    values[m - 10] = -1.0
    y = np.where(np.arange(m) < m // 2, 1.0, -1.0)
    found = ascend(Problem(Hinge(), 1.0), values, y, sample_weight=c, n_jobs=2, tol=1e-9)
    assert found.w == pytest.approx([1.0], rel=1e-4)  # min ½w² + max(0, 1 − w)


@pytest.mark.parametrize("before", [SquaredHinge(), Hinge()])
def test_a_start_outside_the_dual_domain_is_brought_inside(before):
    """From another loss, or from other labels."""
    first = ascend(Problem(before, LAM), X, Y)
    found = ascend(Problem(Hinge(), LAM), X, -Y, start=first)
    assert np.isfinite(found.state.estimate) and found.certificate.relative_gap <= 1e-3


@each_intercept
def test_some_sweeps_improve_a_dual_point(intercept):
    given = objective(Problem(Hinge(), LAM, intercept), X, Y, C)
    alpha = 0.3 * Y
    before = alpha.copy()
    bounds = [given.lower_bound(improve_dual(given, alpha, 0.1, sweeps)) for sweeps in (1, 5, 20)]
    assert given.lower_bound(alpha) < bounds[0] < bounds[1] < bounds[2]
    assert (alpha == before).all()


def test_rows_that_are_not_in_memory_are_refused_with_a_sentence():
    data = Whitened(Dense(X), np.eye(D), EQUAL_WEIGHTS, ALONE)
    with pytest.raises(ValueError, match=r"reads rows one by one, out of order, so they have to be kept in memory"):
        DualAscent().start(Problem(Hinge(), LAM).on(data, Y), Run(1e-3, True, 100, 0))
