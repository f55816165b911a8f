"""Many problems at once: each is solved as it would be alone, and the certificate is that of its own w."""

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import DualAscent, Hinge, InteriorPoint, Logistic, Newton, Problem, SmoothedHinge, SquaredHinge, Status
from primalsvm.inputs import as_batch
from primalsvm.solvers import together as together_module
from primalsvm.solvers.drive import Stops, drive
from primalsvm.solvers.joint_ascent import Frame, solve_jointly, sweep
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.together import drive_together
from primalsvm.vectors import room_for, vector_of

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


def batches(kind, weight=None, X=X, signs=SIGNS):
    batch = as_batch(KINDS[kind](X), signs[:, 0].astype(float), weight)
    return [batch._replace(y=column.astype(float)) for column in signs.T]


def together(problem, given, tol=1e-3, **options):
    return drive_together(problem, given, DualAscent(), Stops(tol, 20_000), **options)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@each_intercept
@each_kind
@pytest.mark.parametrize("weighted", [False, True])
def test_each_problem_reaches_its_optimum(loss, intercept, kind, weighted):
    problem, given = Problem(loss, 0.02, intercept), batches(kind, WEIGHT if weighted else None)
    for own, found in zip(given, together(problem, given), strict=True):
        best = drive(problem, own, Newton(), Stops()).certificate.primal
        assert found.certificate.relative_gap <= 1e-10 and found.status is Status.CONVERGED
        assert problem.value(own, found.w, found.b) == pytest.approx(found.certificate.primal, rel=1e-12)
        assert found.certificate.primal == pytest.approx(best, rel=1e-8)


@each_intercept
@each_kind
@pytest.mark.parametrize("K", [3, 50])  # more classes than features: dense rows are taken as sparse ones
def test_steps_in_single_precision_have_certificates_in_double(intercept, kind, K):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 40))
    codes = (X[:, :3] + rng.normal(size=(3000, 3))).argmax(axis=1)
    signs = np.where(codes[:, None] == np.arange(K) % 3, 1, -1)
    problem, given = Problem(Hinge(), 1e-3, intercept), batches(kind, X=X, signs=signs)
    for own, found in list(zip(given, together(problem, given), strict=True))[:3]:
        best = drive(problem, own, Newton(), Stops(1e-8)).certificate
        assert found.certificate.relative_gap <= 1e-3
        assert problem.value(own, found.w, found.b) == pytest.approx(found.certificate.primal, rel=1e-13)
        assert found.certificate.dual <= best.primal * (1 + 1e-13)
        assert found.certificate.primal >= best.dual * (1 - 1e-13)


@each_kind
def test_a_bound_is_never_above_what_it_bounds(kind):
    """Strong regularisation: P − D is below the rounding of single precision."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(30_000, 4))) + 3
    signs = np.where(rng.choice(5, 30_000, p=[0.9, 0.04, 0.03, 0.02, 0.01])[:, None] == np.arange(5), 1, -1)
    for found in together(Problem(Hinge(), 1e4), batches(kind, X=X, signs=signs)):
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
    batch = batches(kind, WEIGHT)[0]
    alpha, plain = np.zeros((M, K)), np.zeros((M, K))
    V, centre = room_for(batch.rows, K, np.float64), rng.normal(size=K)
    beta, square = np.zeros(K), np.zeros(K)
    norms, sleep, nap = np.full(M, -1.0), np.zeros(M, np.uint8), np.zeros(M, np.uint8)
    for relaxation in (1.0, 1.4):
        gap, gain, order = np.zeros(K), np.zeros(K), rng.permutation(M).astype(np.uint32)
        frame = Frame(problem.lam, float(WEIGHT.sum()), 0.3, relaxation)
        sweep(
            batch, SIGNS, Hinge(), frame, centre, norms, order, alpha, V, beta, square, gap, gain, sleep, nap
        )  # fmt: skip
        expected = plain_sweep(problem, X, SIGNS, WEIGHT, order, plain, centre, 0.3, relaxation)
        np.testing.assert_allclose(alpha, plain, atol=1e-12)
        found = np.stack([vector_of(batch.rows, V, k) for k in range(K)], axis=1)
        for ours, theirs in zip((found, beta, gap, gain), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-10)
        np.testing.assert_allclose(square, (found**2).sum(axis=0), atol=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "solver", [DualAscent(), SolverSequence((Stage(DualAscent()), Stage(Newton())))], ids=["ascent", "sequence"]
)
def test_after_some_sweeps_each_goes_on_alone(solver, n_jobs, monkeypatch):
    problem, given = Problem(Hinge(), 0.002, "free"), batches("csr")
    monkeypatch.setattr(together_module, "SWEEPS", 3)
    solutions = drive_together(problem, given, solver, Stops(max_iter=20_000), n_jobs=n_jobs)
    for found in solutions:
        assert found.certificate.relative_gap <= 1e-10 and found.n_epochs > 3
        assert found.trace["epoch"][0] == 3 and (np.diff(found.trace["epoch"]) > 0).all()
        assert found.trace["epoch"][-1] == found.n_epochs and f"{found.n_epochs:.4g} epochs" in found.message
        assert (np.diff(found.trace["seconds"]) > 0).all() and found.seconds >= found.trace["seconds"][-1]


def test_a_warm_start_is_at_its_end():
    problem, given = Problem(Hinge(), 0.02, "free"), batches("csr")
    before = together(problem, given)
    again = together(problem, given, start=before)
    assert max(one.n_epochs for one in again) < 0.5 * max(one.n_epochs for one in before)
    np.testing.assert_allclose([one.w for one in again], [one.w for one in before], atol=1e-5)


def test_it_stops_where_it_must():
    problem, given = Problem(Hinge(), 1e-6, "free"), batches("csr")
    short = drive_together(problem, given, DualAscent(), Stops(1e-9, 2))
    assert {one.status for one in short} == {Status.MAX_ITER} and {one.n_epochs for one in short} == {2.0}
    assert "stopped after 2 epochs" in short[0].message
    hasty = drive_together(problem, given, DualAscent(), Stops(1e-9, 100, max_seconds=1e-9))
    assert {one.status for one in hasty} == {Status.MAX_SECONDS}


def test_a_problem_that_is_solved_leaves():
    signs = np.stack([np.where(X[:, 0] > 0, 1, -1), SIGNS[:, 1]], axis=1).astype(np.int8)
    easy, hard = together(Problem(Hinge(), 0.5), batches("csr", signs=signs))
    alone = together(Problem(Hinge(), 0.5), batches("csr", signs=signs[:, 1:]))[0]
    assert easy.n_epochs != hard.n_epochs
    assert hard.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-9)


@each_kind
def test_more_threads_than_problems(kind):
    problem, given = Problem(Hinge(), 0.02, "free"), batches(kind)
    alone, many = together(problem, given), together(problem, given, n_jobs=K + 3)
    for one, other in zip(alone, many, strict=True):
        assert other.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-9)


def test_watchers_are_told():
    told = []
    together(Problem(Hinge(), 0.02), batches("csr"), watch=told.append)
    assert told[-1].relative_gap <= 1e-10 and told[0].max_iter == 20_000


def test_solve_jointly_can_be_interrupted():
    found, _ = solve_jointly(
        Problem(Hinge(), 1e-6), batches("csr"), Stops(1e-9), lambda: True,
        sweeps=50, stage=Stage(DualAscent()), seed=0, start=[None] * K,
    )  # fmt: skip
    assert {one.status for one in found} == {Status.INTERRUPTED}
    assert all(np.isfinite(one.certificate.primal) for one in found)


def test_problems_that_will_not_make_it_are_given_up_for_the_next_solver():
    """Columns of very different sizes: a few sweeps for all classes, then each by the interior-point method."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(600, 250)) * 10.0 ** rng.uniform(-2, 2, 250)
    classes = rng.integers(0, 3, 600)
    given = [as_batch(data, np.where(classes == k, 1.0, -1.0)) for k in range(3)]
    solver = SolverSequence((Stage(DualAscent(), 1e7, 1e6), Stage(InteriorPoint())))
    for found in drive_together(Problem(Hinge(), 1e-5, "free"), given, solver, Stops()):
        assert found.status is Status.CONVERGED
        assert found.trace["solver"][0] == "dual_ascent" and found.trace["solver"][-1] == "interior_point"
        assert found.trace["epoch"][0] < 50


def test_a_warm_start_from_a_sequence_is_used():
    problem, given = Problem(Hinge(), 0.02, "free"), batches("csr")
    solver = SolverSequence((Stage(DualAscent()), Stage(Newton())))
    before = [drive(problem, one, solver, Stops()) for one in given]
    again = drive_together(problem, given, solver, Stops(), start=before)
    assert max(one.n_epochs for one in again) < 0.5 * max(one.n_epochs for one in before)
