"""Many problems at once: each is solved as it would be alone, and the certificate is that of its own w."""

import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import DualAscent, Hinge, InteriorPoint, Logistic, Newton, Problem, SmoothedHinge, SquaredHinge, Status
from primalsvm.data import ALONE, ThreadPool, as_block, as_dataset, as_weights
from primalsvm.data.vectors import vector_rows, zero_vectors
from primalsvm.objective import Objectives
from primalsvm.solvers import costs, joint_ascent
from primalsvm.solvers.costs import Size
from primalsvm.solvers.drive import drive
from primalsvm.solvers.joint_ascent import JointAscent, SweepFrame, sweep
from primalsvm.solvers.policy import choose
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.stops import Stops
from tests.helpers import solution_of

RNG = np.random.default_rng(1)
M, D, K = 120, 9, 4
X = RNG.normal(size=(M, D)) * (RNG.random((M, D)) < 0.7)
CODES = (X[:, :K] + 0.7 * RNG.normal(size=(M, K))).argmax(axis=1)
SIGNS = np.where(CODES[:, None] == np.arange(K), 1, -1).astype(np.int8)
WEIGHT = RNG.integers(0, 4, size=M).astype(float)
LOSSES = [Hinge(), SquaredHinge(), SmoothedHinge(0.5), Logistic()]
KINDS = {"csr": sp.csr_matrix, "dense": np.array}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_intercept = pytest.mark.parametrize("intercept", ["none", "penalized", "free"])


def problems(problem, kind, weight=None, X=X, signs=SIGNS, threads=ALONE):
    return Objectives(problem, as_dataset(KINDS[kind](X), weight, threads=threads), signs)


def together(given, tol=1e-3, solver="dual_ascent", max_iter=20_000, **options):
    """The solutions of several problems, as the policy has them solved."""
    chosen = choose(solver, Size.of(given.data), given.problem.loss, count=len(given), jointly=True)
    return drive(given, chosen, Stops(tol, max_iter), **options)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@each_intercept
@each_kind
@pytest.mark.parametrize("weighted", [False, True])
def test_each_problem_reaches_its_optimum(loss, intercept, kind, weighted):
    given = problems(Problem(loss, 0.02, intercept), kind, WEIGHT if weighted else None)
    for own, found in zip(given, together(given), strict=True):
        best = solution_of(own, Newton()).certificate.primal
        assert found.certificate.relative_gap <= 1e-10 and found.status is Status.CONVERGED
        assert own.value(found.w, found.b) == pytest.approx(found.certificate.primal, rel=1e-12)
        assert found.certificate.primal == pytest.approx(best, rel=1e-8)


@each_intercept
@each_kind
@pytest.mark.parametrize("K", [3, 50])  # more classes than features: dense rows are taken as sparse ones
def test_steps_in_single_precision_have_certificates_in_double(intercept, kind, K):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 40))
    codes = (X[:, :3] + rng.normal(size=(3000, 3))).argmax(axis=1)
    signs = np.where(codes[:, None] == np.arange(K) % 3, 1, -1)
    given = problems(Problem(Hinge(), 1e-3, intercept), kind, X=X, signs=signs)
    for own, found in list(zip(given, together(given), strict=True))[:3]:
        best = solution_of(own, Newton(), Stops(1e-8)).certificate
        assert found.certificate.relative_gap <= 1e-3
        assert own.value(found.w, found.b) == pytest.approx(found.certificate.primal, rel=1e-13)
        assert found.certificate.dual <= best.primal * (1 + 1e-13)
        assert found.certificate.primal >= best.dual * (1 - 1e-13)


@each_kind
def test_a_bound_is_never_above_what_it_bounds(kind):
    """Strong regularisation: P − D is below the rounding of single precision."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(30_000, 4))) + 3
    signs = np.where(rng.choice(5, 30_000, p=[0.9, 0.04, 0.03, 0.02, 0.01])[:, None] == np.arange(5), 1, -1)
    for found in together(problems(Problem(Hinge(), 1e4), kind, X=X, signs=signs)):
        assert -1e-14 <= found.certificate.gap <= 1e-3 * found.certificate.primal


def plain_sweep(problem, X, signs, c, order, alpha, centre, strength, relaxation):
    """A sweep in plain NumPy; returns V, β and what the kernel adds up."""
    total = c.sum()
    s = 1 / (problem.lam * total)
    V, beta = X.T @ (c[:, None] * alpha), c @ alpha
    gap, gain = np.zeros(signs.shape[1]), np.zeros(signs.shape[1])
    loss = problem.loss
    for i in order:
        if c[i] == 0:
            continue
        p = s * (X[i] @ V) + centre + strength * s * beta
        q = s * c[i] * (X[i] @ X[i] + strength) / relaxation
        for k in range(signs.shape[1]):
            y, old = float(signs[i, k]), alpha[i, k]
            new = loss.dual_step(p[k], y, old, q)
            gap[k] += c[i] * (loss.value(p[k], y) + loss.conjugate(-old, y) + old * p[k])
            gain[k] += c[i] * (loss.conjugate(-old, y) - loss.conjugate(-new, y))
            V[:, k] += c[i] * (new - old) * X[i]
            beta[k] += c[i] * (new - old)
            alpha[i, k] = new
    return V, beta, gap, gain


@each_kind
def test_a_sweep_is_the_plain_one(kind):
    problem, rng = Problem(Hinge(), 0.02, "free"), np.random.default_rng(3)
    rows = as_block(KINDS[kind](X))
    alpha, plain = np.zeros((M, K)), np.zeros((M, K))
    V, centre = zero_vectors(rows, K, np.float64), rng.normal(size=K)
    beta, square = np.zeros(K), np.zeros(K)
    norms, skip, pause = np.full(M, -1.0), np.zeros(M, np.uint8), np.zeros(M, np.uint8)
    for relaxation in (1.0, 1.4):
        gap, gain, order = np.zeros(K), np.zeros(K), rng.permutation(M).astype(np.uint32)
        frame = SweepFrame(problem.lam, float(WEIGHT.sum()), 0.3, relaxation)
        sweep(
            rows, as_weights(WEIGHT, M), SIGNS, Hinge(), frame, centre, norms, order, alpha, V, beta, square,
            gap, gain, skip, pause,
        )  # fmt: skip
        expected = plain_sweep(problem, X, SIGNS, WEIGHT, order, plain, centre, 0.3, relaxation)
        np.testing.assert_allclose(alpha, plain, atol=1e-12)
        found = vector_rows(rows, V, K).T
        for ours, theirs in zip((found, beta, gap, gain), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-10)
        np.testing.assert_allclose(square, (found**2).sum(axis=0), atol=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "solver", [DualAscent(), SolverSequence((Stage(DualAscent()), Stage(Newton())))], ids=["ascent", "sequence"]
)
def test_after_some_sweeps_each_goes_on_alone(solver, n_jobs, monkeypatch):
    monkeypatch.setattr(joint_ascent, "MOST_SWEEPS", 3)
    with ThreadPool(n_jobs) as threads:
        solutions = together(problems(Problem(Hinge(), 0.002, "free"), "csr", threads=threads), solver=solver)
    for found in solutions:
        assert found.certificate.relative_gap <= 1e-10 and found.n_epochs > 3
        assert found.trace["epoch"][0] == 3 and (np.diff(found.trace["epoch"]) > 0).all()
        assert found.trace["epoch"][-1] == found.n_epochs and f"{found.n_epochs:.4g} epochs" in found.message
        assert (np.diff(found.trace["seconds"]) > 0).all() and found.seconds >= found.trace["seconds"][-1]


def test_after_its_sweeps_a_problem_goes_on_even_if_it_seems_to_be_solved(monkeypatch):
    """The estimate of the gap may be wrong, and so it is no reason to stop without a certificate."""
    monkeypatch.setattr(joint_ascent, "MOST_SWEEPS", 3)
    estimate = joint_ascent.close_sweep

    def too_low(*arguments):
        estimate(*arguments)
        for member in arguments[2]:
            member.estimate = 0.0

    monkeypatch.setattr(joint_ascent, "close_sweep", too_low)
    found = together(problems(Problem(Hinge(), 0.002, "free"), "csr"))
    assert {one.status for one in found} == {Status.CONVERGED} and min(one.n_epochs for one in found) > 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_evaluation_changes_nothing_whichever_problems_are_chosen(n_jobs):
    with ThreadPool(n_jobs) as threads:
        given, solver = problems(Problem(Hinge(), 0.02, "free"), "csr", threads=threads), JointAscent()
        state = solver.start(given, Run(1e-9, True, 100, 0), range(K), [None] * K)
        for _ in range(4):
            state = solver.advance(given, state)
        before = pickle.dumps(state)
        every = solver.evaluate(given, state, range(K))
        some = solver.evaluate(given, state, [3, 1])
        assert pickle.dumps(state) == before
        for one, other in zip(some, (every[3], every[1]), strict=True):
            assert one.w.tobytes() == other.w.tobytes() and one.b == other.b
            assert one.primal == pytest.approx(other.primal, rel=1e-14) and one.dual == pytest.approx(other.dual)
        for k, one in enumerate(every):
            w, b = solver.iterate(given, state, k)
            np.testing.assert_allclose(w, one.w, rtol=1e-12)
            assert solver.hand_over(given, state, k).b == b


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_problem_that_is_closed_is_left_out(n_jobs):
    with ThreadPool(n_jobs) as threads:
        given, solver = problems(Problem(Hinge(), 0.02), "dense", threads=threads), JointAscent()
        state = solver.start(given, Run(1e-9, True, 100, 0), [0, 2, 3], [None] * K)
        assert state.members[1] is None
        solver.advance(given, state)
        single, point = solver.close(given, state, 2)
        assert isinstance(single, DualAscent) and point.alpha.shape == (M,) and state.members[2] is None
        solver.advance(given, state)
        assert sorted(k for group in state.groups for k in group.problems) == [0, 3]
        assert [member.epoch for member in state.members if member is not None] == [2.0, 2.0]
        np.testing.assert_allclose(point.w, given[2].primal_point(point.alpha)[0], atol=1e-12)  # the mean of one sweep


def test_a_warm_start_is_at_its_end():
    given = problems(Problem(Hinge(), 0.02, "free"), "csr")
    before = together(given)
    again = together(given, start=[one.state for one in before])
    assert max(one.n_epochs for one in again) < 0.5 * max(one.n_epochs for one in before)
    np.testing.assert_allclose([one.w for one in again], [one.w for one in before], atol=1e-5)


def test_it_stops_where_it_must():
    given = problems(Problem(Hinge(), 1e-6, "free"), "csr")
    solver = choose("dual_ascent", Size.of(given.data), Hinge(), count=K, jointly=True)
    short = drive(given, solver, Stops(1e-9, 2))
    assert {one.status for one in short} == {Status.MAX_ITER} and {one.n_epochs for one in short} == {2.0}
    assert "stopped after 2 epochs" in short[0].message
    hasty = drive(given, solver, Stops(1e-9, 100, max_seconds=1e-9))
    assert {one.status for one in hasty} == {Status.MAX_SECONDS}


def test_a_run_that_is_cut_within_a_sweep_is_certified(monkeypatch):
    monkeypatch.setattr(joint_ascent, "SWEEP_CHUNK", 50)
    given = problems(Problem(Hinge(), 0.02, "free"), "csr")
    found = drive(given, JointAscent(), Stops(1e-9, max_seconds=1e-9))
    for own, one in zip(given, found, strict=True):
        assert one.n_epochs == 0.0 and one.status is Status.MAX_SECONDS
        assert one.certificate.primal == pytest.approx(own.value(one.w, one.b), rel=1e-12)
        assert 0.0 < one.certificate.dual < one.certificate.primal < 1.0


def test_a_problem_that_is_solved_leaves():
    signs = np.stack([np.where(X[:, 0] > 0, 1, -1), SIGNS[:, 1]], axis=1).astype(np.int8)
    easy, hard = together(problems(Problem(Hinge(), 0.5), "csr", signs=signs))
    alone = together(problems(Problem(Hinge(), 0.5), "csr", signs=signs[:, 1:]))[0]
    assert easy.n_epochs != hard.n_epochs
    assert hard.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-9)


@each_kind
def test_more_threads_than_problems(kind):
    problem = Problem(Hinge(), 0.02, "free")
    alone = together(problems(problem, kind))
    with ThreadPool(K + 3) as threads:
        many = together(problems(problem, kind, threads=threads))
    for one, other in zip(alone, many, strict=True):
        assert other.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-9)


def test_watchers_are_told():
    told = []
    together(problems(Problem(Hinge(), 0.02), "csr"), on_progress=told.append)
    assert told[-1].relative_gap <= 1e-10 and told[0].max_iter == 20_000


def test_it_can_be_interrupted():
    presses = iter([signal.SIGINT])

    def press_once(progress):
        for key in presses:
            signal.raise_signal(key)

    found = together(problems(Problem(Hinge(), 1e-6), "csr"), 1e-9, on_progress=press_once)
    assert {one.status for one in found} == {Status.INTERRUPTED}
    assert all(np.isfinite(one.certificate.primal) for one in found)


def test_problems_that_will_not_make_it_are_given_up_for_the_next_solver():
    """Columns of very different sizes: a few sweeps for all classes, then each by the interior-point method."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(600, 250)) * 10.0 ** rng.uniform(-2, 2, 250)
    signs = np.where(rng.integers(0, 3, 600)[:, None] == np.arange(3), 1, -1).astype(np.int8)
    budget = 1e7
    solver = SolverSequence((Stage(DualAscent(), budget, 1e6), Stage(InteriorPoint())))
    sweep = costs.joint_sweep(costs.Size(600, 250, 600 * 250, False), 3)
    for found in together(problems(Problem(Hinge(), 1e-5, "free"), "dense", X=data, signs=signs), solver=solver):
        assert found.status is Status.CONVERGED
        assert found.trace["solver"][0] == "dual_ascent" and found.trace["solver"][-1] == "interior_point"
        assert found.trace["epoch"][0] * sweep < 0.5 * budget  # by the forecast, not because the budget is used up


def test_a_warm_start_from_a_sequence_is_used():
    given = problems(Problem(Hinge(), 0.02, "free"), "csr")
    solver = SolverSequence((Stage(DualAscent()), Stage(Newton())))
    before = [solution_of(own, solver) for own in given]
    again = together(given, solver=solver, max_iter=None, start=[one.state for one in before])
    assert max(one.n_epochs for one in again) < 0.5 * max(one.n_epochs for one in before)
