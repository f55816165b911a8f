"""Pegasos: the compiled solver is the paper's algorithm, step by step, and its certificate holds."""

import itertools
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

from primalsvm import Hinge, Logistic, Pegasos, Problem, SmoothedHinge, SquaredHinge, Status, solve
from primalsvm.data import ALONE, Dense, Whitened, as_weights
from primalsvm.solvers import stochastic as module
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.sampling import Sampler
from tests import reference
from tests.helpers import objective, solution_of
from tests.reference import noisy, weights

M, D = 40, 6
X, Y = noisy(M, D)
LAM = 0.05
RUN = Run(target=1e-3, certify=False, max_iter=10**6, seed=0)


def paper(X, y, lam, order, project=False, w1=None, c=None, first=1):
    """The algorithm of the paper's section 2, weights added: the iterates w_1 … w_{T+1}, given A_t = order[t − 1]."""
    w = np.zeros(X.shape[1]) if w1 is None else w1
    c = np.ones(len(y)) if c is None else c / c.mean()
    iterates = [w]
    for t, A in enumerate(order, start=first):
        eta = 1 / (lam * t)
        violated = y[A] * (X[A] @ w) < 1  # A_t⁺
        w = (1 - eta * lam) * w + eta / len(A) * (c[A] * y[A] * violated) @ X[A]
        if project and (norm := np.linalg.norm(w)) > 0:
            w = min(1, 1 / (math.sqrt(lam) * norm)) * w
        iterates.append(w)
    return np.array(iterates)


@pytest.fixture
def draws(monkeypatch):
    """Make Pegasos visit the rows of the given array, in that order."""

    def fix(order):
        left = [np.asarray(order, np.uint64).ravel()]

        def draw(self, n):
            rows, left[0] = left[0][:n], left[0][n:]
            assert rows.size == n, "more rows were drawn than planned"
            return rows

        monkeypatch.setattr(Sampler, "draw", draw)

    return fix


def order_of(steps, k, seed=0, m=M):
    return np.random.default_rng(seed).integers(m, size=(steps, k))


def run(problem, data, **options):
    X, y, c = data if len(data) == 3 else (*data, None)
    return solve(problem, X, y, sample_weight=c, solver=Pegasos(**options), certify=False)


# ---- faithful --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("k", [1, 16, M])
def test_equals_the_paper(draws, k, project, convert):
    order = order_of(300, k)
    truth = paper(X, Y, LAM, order, project)
    for steps in (1, 2, 3, 30, 300):  # step by step: errors cannot cancel later
        draws(order[:steps])
        found = run(
            Problem(Hinge(), LAM), (convert(X), Y), n_iter=steps, batch_size=k, projection=project, average="last"
        )
        np.testing.assert_allclose(found.w, truth[steps], rtol=1e-10, atol=1e-10)
    if project and k == 1:  # the test says something about projections
        assert not np.allclose(truth[300], paper(X, Y, LAM, order)[300], atol=1e-6)


@pytest.mark.parametrize("k", [1, 16])
@pytest.mark.parametrize("project", [False, True])
def test_equals_the_paper_with_weights(draws, k, project):
    order, c = order_of(200, k), weights(M)
    draws(order)
    found = run(Problem(Hinge(), LAM), (X, Y, c), n_iter=200, batch_size=k, projection=project, average="last")
    np.testing.assert_allclose(found.w, paper(X, Y, LAM, order, project, c=c)[-1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("project", [False, True])
def test_a_penalised_intercept_is_a_constant_feature(draws, project):
    order = order_of(200, 4)
    draws(order)
    found = run(
        Problem(Hinge(), LAM, "penalized"), (X, Y), n_iter=200, batch_size=4, projection=project, average="last"
    )
    truth = paper(np.column_stack([X, np.ones(M)]), Y, LAM, order, project)[-1]
    np.testing.assert_allclose(np.append(found.w, found.b), truth, rtol=1e-10, atol=1e-10)


def test_the_first_step_erases_the_start(draws):
    order = order_of(50, 1)
    x, y = X[order[0, 0]], Y[order[0, 0]]
    w1 = 0.9 / math.sqrt(LAM) * y * x / np.linalg.norm(x)
    truth = paper(X, Y, LAM, order, w1=w1)
    assert not np.allclose(truth[1], paper(X, Y, LAM, order)[1])  # w₁ decides which slope the first step sees …
    draws(order)
    found = run(Problem(Hinge(), LAM), (X, Y), n_iter=50, w1=w1, average="uniform")
    np.testing.assert_allclose(found.w, truth[:-1].mean(axis=0), rtol=1e-10, atol=1e-10)  # … and is part of the average


@pytest.mark.parametrize("loss", [Logistic(), SmoothedHinge(0.5)])
def test_other_losses_take_their_own_slope(draws, loss):
    order = order_of(100, 1)
    w = np.zeros(D)
    for t, (i,) in enumerate(order, start=1):
        w = (1 - 1 / t) * w - 1 / (LAM * t) * reference.loss_slopes(loss, X[i] @ w, Y[i]) * X[i]
    draws(order)
    np.testing.assert_allclose(run(Problem(loss, LAM), (X, Y), n_iter=100, average="last").w, w, rtol=1e-9, atol=1e-10)


def test_an_offset_shortens_the_steps(draws):
    order, w1 = order_of(100, 1), np.full(D, 0.1)
    draws(order)
    found = run(Problem(Hinge(), LAM), (X, Y), n_iter=100, offset=7.0, w1=w1, average="last")
    np.testing.assert_allclose(found.w, paper(X, Y, LAM, order, w1=w1, first=8)[-1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("average", ["last", "uniform"])
def test_a_tiny_scale_is_folded_into_v(draws, average):
    """w = a v with a close to underflow: rescaling changes neither w nor the average."""
    order, w = order_of(100, 1), np.random.default_rng(1).normal(size=D)
    solver, hinge = Pegasos(n_iter=100, average=average), objective(Problem(Hinge(), LAM), X, Y)
    draws(order)
    state = solver.start(hinge, RUN)
    state.iterate = state.iterate._replace(t=3, a=1e-8, square=float(w @ w))
    state.v[:] = w / 1e-8
    while not state.finished:
        state = solver.advance(hinge, state)
    assert state.iterate.a > 1e-8  # it has been rescaled: without that it would be 3e-10 by now
    iterates = paper(X, Y, LAM, order, w1=w, first=4)
    truth = iterates[-1] if average == "last" else iterates[:-1].mean(axis=0)
    np.testing.assert_allclose(solver.iterate(hinge, state)[0], truth, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("intercept", ["none", "penalized"])
@pytest.mark.parametrize("c", [None, weights(M)], ids=["plain", "weighted"])
def test_the_expected_stochastic_subgradient_is_the_full_one(draws, c, intercept):
    problem, w = Problem(Hinge(), LAM, intercept), np.random.default_rng(2).normal(size=D)
    offset = 4.0
    eta, b = 1 / (LAM * (1 + offset)), 0.0
    steps = []
    for i in range(M):
        draws([i])
        found = run(problem, (X, Y, c), n_iter=1, offset=offset, w1=w, average="last")
        steps.append((np.append(w, b) - np.append(found.w, found.b)) / eta)
    full = np.append(*reference.subgradient(problem, X, Y, w, b, c))
    np.testing.assert_allclose(np.mean(steps, axis=0), full, rtol=1e-10, atol=1e-12)


# ---- what is returned ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [1, 7, 200])
@pytest.mark.parametrize("intercept", ["none", "penalized"])
@pytest.mark.parametrize("project", [False, True])
def test_averages_are_the_averages_of_the_iterates(draws, T, intercept, project):
    features = X if intercept == "none" else np.column_stack([X, np.ones(M)])
    order = order_of(T, 2)
    iterates = paper(features, Y, LAM, order, project)[:-1]  # w_1 … w_T
    t = np.arange(1, T + 1)
    truth = {
        "uniform": iterates.mean(axis=0),
        "weighted": t @ iterates / t.sum(),
        "suffix": iterates[math.ceil(T / 2) :].mean(axis=0) if T > 1 else None,
    }
    for average, expected in truth.items():
        if expected is None:
            continue
        draws(order)
        found = run(
            Problem(Hinge(), LAM, intercept), (X, Y), n_iter=T, batch_size=2, projection=project, average=average
        )
        np.testing.assert_allclose(np.append(found.w, found.b)[: features.shape[1]], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("average", ["last", "uniform", "weighted"])
@pytest.mark.parametrize("lam", [1.0, 0.17, 0.077, 1 / 93, 3e-3, 1e-4, 1e-5])
def test_the_first_step_shrinks_to_zero_for_every_lam(draws, average, lam):
    """1 − η₁λ is 0 by the formula and ±6e-17 by the arithmetic, depending on λ: the average must not notice."""
    order = order_of(50, 1)
    iterates = paper(X, Y, lam, order)
    t = np.arange(1, 51)
    truth = {"last": iterates[-1], "uniform": iterates[:-1].mean(axis=0), "weighted": t @ iterates[:-1] / t.sum()}[
        average
    ]
    draws(order)
    found = run(Problem(Hinge(), lam), (X, Y), n_iter=50, average=average)
    np.testing.assert_allclose(found.w, truth, rtol=1e-10, atol=1e-10 * np.abs(truth).max())


def test_a_random_iterate_is_uniform_over_the_iterates(draws, monkeypatch):
    monkeypatch.setattr(module, "STEP_CHUNK", 2)  # several chunks: the choice is made anew in each
    T = 7
    order = order_of(T, 1)
    iterates = paper(X, Y, LAM, order)[:-1]
    counts = np.zeros(T, int)
    for seed in range(1400):
        draws(order)
        w = solve(
            Problem(Hinge(), LAM), X, Y, solver=Pegasos(n_iter=T, average="random"), certify=False, random_state=seed
        ).w
        distance = np.abs(iterates - w).max(axis=1)
        assert distance.min() < 1e-12
        counts[distance.argmin()] += 1
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("average", ["last", "uniform"])
def test_tries_keep_the_best(draws, average):
    problem = Problem(Hinge(), LAM)
    order = order_of(90, 1, seed=3)
    outcomes = []
    for part in np.split(order, 3):
        iterates = paper(X, Y, LAM, part)
        outcomes.append(iterates[-1] if average == "last" else iterates[:-1].mean(axis=0))
    values = [reference.primal(problem, X, Y, w) for w in outcomes]
    draws(order)
    found = run(problem, (X, Y), n_iter=90, tries=3, average=average)
    assert found.n_steps == 90
    np.testing.assert_allclose(found.w, outcomes[int(np.argmin(values))], rtol=1e-10, atol=1e-10)


def test_the_best_try_may_be_any_of_them(draws):
    """Over several orders the best is not always the first nor the last: the test above is not about one place."""
    problem, places = Problem(Hinge(), LAM), set()
    for seed in range(8):
        order = order_of(90, 1, seed)
        ends = [paper(X, Y, LAM, part)[-1] for part in np.split(order, 3)]
        best = int(np.argmin([reference.primal(problem, X, Y, w) for w in ends]))
        draws(order)
        found = run(problem, (X, Y), n_iter=90, tries=3, average="last")
        np.testing.assert_allclose(found.w, ends[best], rtol=1e-10, atol=1e-10)
        places.add(best)
    assert places == {0, 1, 2}


@pytest.mark.parametrize("n_iter", [1, 2, 99, 70_001])
@pytest.mark.parametrize("certify", [False, True])
def test_n_iter_is_exact(n_iter, certify):
    found = solve(Problem(Hinge(), LAM), X, Y, solver=Pegasos(n_iter=n_iter), certify=certify, max_iter=1, tol=0.9)
    assert found.n_steps == n_iter
    assert found.n_epochs == pytest.approx(n_iter / M)
    assert found.status in (Status.FINISHED, Status.CONVERGED)


# ---- which rows are visited ------------------------------------------------------------------------------------------


def drawn(m, rows, sizes=None, seed=0, **options):
    """The rows that the solver visits, asked for in pieces of the given sizes."""
    hinge = objective(Problem(Hinge(), LAM), np.ones((m, 1)), np.where(np.arange(m) % 2, 1.0, -1.0))
    state = Pegasos(**options).start(hinge, RUN._replace(seed=seed))
    parts = [state.sampler.draw(size) for size in (sizes or [rows])]
    return np.concatenate(parts).astype(int)


@pytest.mark.parametrize("m", [10, 5000, 40_000, 200_001])
@pytest.mark.parametrize("sampling", ["epochs", "blocks"])
def test_each_row_once_per_epoch(m, sampling):
    pieces = [m // 3, m // 3, m + m % 3 + m // 3, m]  # three epochs, cut anywhere
    epochs = drawn(m, 3 * m, pieces, sampling=sampling).reshape(3, m)
    for epoch in epochs:
        assert np.array_equal(np.sort(epoch), np.arange(m))
    assert not np.array_equal(epochs[0], epochs[1])


def test_neighbours_in_a_block_come_from_far_apart():
    m = 200_000
    order = drawn(m, m, sampling="blocks")
    assert np.median(np.abs(np.diff(order))) > m / 10


def test_epochs_are_uniform_permutations():
    counts = dict.fromkeys(itertools.permutations(range(4)), 0)
    for epoch in drawn(4, 4 * 4800, sampling="epochs").reshape(-1, 4):
        counts[tuple(epoch.tolist())] += 1
    assert scipy.stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_iid_draws_are_uniform_and_independent():
    rows = drawn(7, 49_000, sampling="iid")
    assert scipy.stats.chisquare(np.bincount(rows, minlength=7)).pvalue > 1e-3
    pairs = np.bincount(7 * rows[::2] + rows[1::2], minlength=49)
    assert scipy.stats.chisquare(pairs).pvalue > 1e-3


@pytest.mark.parametrize(("m", "k"), [(5, 2), (6, 3), (4, 4)])
def test_distinct_draws_are_uniform_over_the_subsets(m, k):
    subsets = dict.fromkeys(itertools.combinations(range(m), k), 0)
    for step in drawn(m, 5000 * k, sampling="distinct", batch_size=k).reshape(-1, k):
        subsets[tuple(sorted(step.tolist()))] += 1  # a KeyError if the rows are not distinct
    assert len(subsets) == 1 or scipy.stats.chisquare(list(subsets.values())).pvalue > 1e-3


def test_the_whole_set_is_the_deterministic_subgradient_method():
    truth = paper(X, Y, LAM, np.tile(np.arange(M), (60, 1)), project=True)[-1]
    for seed in (0, 1):
        found = solve(
            Problem(Hinge(), LAM), X, Y, certify=False, random_state=seed,
            solver=Pegasos(batch_size=M, sampling="distinct", n_iter=60, projection=True, average="last"),
        )  # fmt: skip
        np.testing.assert_allclose(found.w, truth, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sampling", ["iid", "distinct", "epochs", "blocks"])
def test_the_seed_decides(sampling):
    orders = [drawn(50, 60, seed=seed, sampling=sampling, batch_size=3) for seed in (1, 1, 2)]
    assert np.array_equal(orders[0], orders[1]) and not np.array_equal(orders[0], orders[2])


@pytest.mark.parametrize("average", ["last", "suffix"])
def test_copies_of_rows_are_visited_as_the_rows_themselves(monkeypatch, average):
    monkeypatch.setattr(module, "STEP_CHUNK_BYTES", 8 * D * 17)  # 17 rows at a time
    problem, c, solver = Problem(Hinge(), LAM, "free"), weights(M), Pegasos(n_iter=500, average=average)
    rows = Whitened(Dense(X), np.eye(D), as_weights(c, M), ALONE)
    copied = solution_of(problem.on(rows, Y), solver, seed=3)
    in_place = solve(problem, X, Y, sample_weight=c, solver=solver, random_state=3)
    np.testing.assert_array_equal(copied.w, in_place.w)
    assert copied.certificate.dual == pytest.approx(in_place.certificate.dual, rel=1e-5)


# ---- certificates ----------------------------------------------------------------------------------------------------

BIG_X, BIG_Y = noisy(3000, 20, seed=7)
BIG_C = weights(3000)


def optimum(loss, lam, intercept, c):
    """P* by other people's solvers."""
    problem = Problem(loss, lam, intercept)
    C = 1 / (lam * (len(BIG_Y) if c is None else c.sum()))
    if not isinstance(loss, Hinge):
        return reference.minimum(problem, BIG_X, BIG_Y, c)
    if intercept == "free":
        other = SVC(kernel="linear", C=C, tol=1e-6).fit(BIG_X, BIG_Y, c)
    else:
        other = Liblinear(C=C, loss="hinge", tol=1e-9, max_iter=10**6, fit_intercept=intercept == "penalized")
        other.fit(BIG_X, BIG_Y, c)
    return reference.primal(problem, BIG_X, BIG_Y, other.coef_[0], float(np.ravel(other.intercept_)[0]), c)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("loss", "intercept"),
    [(Hinge(), "none"), (Hinge(), "penalized"), (Hinge(), "free"), (Logistic(), "free"), (SquaredHinge(), "none")],
)
@pytest.mark.parametrize("lam", [1e-2, 1e-4])
def test_the_certificate_is_true_and_small_within_50_epochs(loss, intercept, weighted, lam):
    c = BIG_C if weighted else None
    best = optimum(loss, lam, intercept, c)
    found = solve(Problem(loss, lam, intercept), BIG_X, BIG_Y, sample_weight=c, solver=Pegasos(), tol=1e-2, max_iter=50)
    primal, dual = found.certificate.primal, found.certificate.dual
    assert dual <= best * (1 + 1e-9)
    assert primal >= best * (1 - 1e-6)
    assert primal == pytest.approx(reference.primal(Problem(loss, lam, intercept), BIG_X, BIG_Y, found.w, found.b, c))
    assert found.certificate.relative_gap <= 1e-2 and found.status is Status.CONVERGED


@pytest.mark.parametrize("options", [
    {"sampling": "iid"}, {"sampling": "epochs", "projection": True}, {"batch_size": 16, "average": "last"},
    {"sampling": "distinct", "batch_size": 5, "average": "suffix"},
    {"average": "uniform", "tries": 2}, {"average": "random"},
])  # fmt: skip
def test_every_option_gets_a_true_certificate(options):
    problem, best = Problem(Hinge(), 1e-2, "free"), optimum(Hinge(), 1e-2, "free", None)
    found = solve(problem, BIG_X, BIG_Y, solver=Pegasos(n_iter=60_000 // options.get("batch_size", 1), **options))
    assert found.certificate.dual <= best * (1 + 1e-9)
    assert found.certificate.primal == pytest.approx(reference.primal(problem, BIG_X, BIG_Y, found.w, found.b))
    assert 0 < found.certificate.relative_gap < 0.2


def test_an_evaluation_leaves_the_state_as_it_is():
    hinge, solver = objective(Problem(Hinge(), 1e-2, "free"), BIG_X, BIG_Y), Pegasos()
    state = solver.start(hinge, RUN._replace(certify=True))
    for _ in range(4):
        state = solver.advance(hinge, state)
    before = pickle.dumps(state)
    found = [solver.evaluate(hinge, state) for _ in range(2)]
    assert pickle.dumps(state) == before
    assert found[0].primal == found[1].primal and found[0].dual == found[1].dual


@pytest.mark.parametrize("lam", [1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("options", [{}, {"projection": True}, {"n_iter": 30_000}, {"n_iter": 3000, "average": "last"}])
def test_the_squared_hinge_does_not_overflow(lam, options):
    problem = Problem(SquaredHinge(), lam)
    found = solve(problem, 10 * BIG_X, BIG_Y, solver=Pegasos(**options), max_iter=20)
    assert np.isfinite(found.w).all()
    assert found.certificate.primal <= 1.0  # P(0)
    assert np.linalg.norm(found.w) <= objective(problem, BIG_X, BIG_Y).radius


@pytest.mark.parametrize("average", ["last", "weighted"])
def test_the_free_intercept_stays_where_scores_are(average):
    lam = 1e-6  # steps of 1/(λt) would throw b to a million
    Xs, ys = BIG_X[:500], BIG_Y[:500]
    for n_iter in (1, 10, 1000):
        found = run(Problem(Hinge(), lam, "free"), (Xs, ys), n_iter=n_iter, average=average)
        assert abs(found.b) <= 2 * math.sqrt(n_iter)


def test_one_class_by_weight_keeps_the_intercept_in_its_bounds():
    c = np.where(BIG_Y > 0, 1.0, 1e-9)
    found = run(Problem(Hinge(), 1.0, "free"), (BIG_X, BIG_Y, c), n_iter=100_000, average="last")
    assert abs(found.b) <= 1 + np.linalg.norm(BIG_X, axis=1).max()


# ---- refusals and warm starts ----------------------------------------------------------------------------------------


def test_a_start_outside_the_ball_is_refused():
    with pytest.raises(ValueError, match="w1 must lie in the ball"):
        run(Problem(Hinge(), LAM), (X, Y), n_iter=1, w1=np.full(D, 1.1 / math.sqrt(LAM * D)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_start_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="w1"):
        run(Problem(Hinge(), LAM), (X, Y), n_iter=1, w1=np.full(D, bad))


def test_a_start_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"w1 has shape \(2,\), expected \(6,\)"):
        run(Problem(Hinge(), LAM), (X, Y), n_iter=1, w1=np.zeros(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"n_iter": 0}, "n_iter must be at least 1"),
        ({"n_iter": 2, "tries": 3}, "n_iter must be at least 1 per try"),
        ({"tries": 0, "n_iter": 5}, "tries must be at least 1"),
        ({"tries": 2}, "more than one try needs n_iter"),
        ({"sampling": "sorted"}, "sampling='sorted'"),
        ({"average": "median"}, "average='median'"),
        ({"offset": -1.0}, "offset must be"),
        ({"offset": np.nan}, "offset must be"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Pegasos(**options)


def test_more_distinct_rows_than_there_are():
    with pytest.raises(ValueError, match="batch_size=41 is more than the 40 rows"):
        run(Problem(Hinge(), LAM), (X, Y), n_iter=1, sampling="distinct", batch_size=M + 1)


def test_a_warm_start_carries_t(draws):
    order = order_of(100, 1)
    solver, problem = Pegasos(n_iter=50, average="last"), Problem(Hinge(), LAM)
    draws(order)
    half = solve(problem, X, Y, solver=solver, certify=False)
    whole = solve(problem, X, Y, solver=solver, certify=False, start=half)
    np.testing.assert_allclose(whole.w, paper(X, Y, LAM, order)[-1], rtol=1e-10, atol=1e-10)


def test_single_precision_data():
    found = solve(Problem(Hinge(), 1e-3), BIG_X.astype(np.float32), BIG_Y, solver=Pegasos(), tol=1e-2, max_iter=50)
    best = optimum(Hinge(), 1e-3, "none", None)
    assert found.certificate.dual <= best * (1 + 1e-6) and found.certificate.relative_gap <= 1e-2
