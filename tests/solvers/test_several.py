"""Several problems on the same rows: each has its own end, best point, bound and soundness check."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from primalsvm import DualAscent, Hinge, InteriorPoint, Newton, Pegasos, Problem, Status
from primalsvm.data import as_dataset, thread_pool
from primalsvm.objective import Evaluation, Objectives
from primalsvm.solvers.drive import drive
from primalsvm.solvers.joint_ascent import JointAscent
from primalsvm.solvers.protocol import Run, Traits
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.several import Several, as_joint
from primalsvm.solvers.stops import Stops
from tests.helpers import objective, solution_of
from tests.reference import noisy
from tests.solvers.test_drive import ScriptState

X, _ = noisy(400, 20)
CODES = np.random.default_rng(1).integers(0, 3, 400) * (X[:, 0] > 0) + 1 * (X[:, 1] > 0)
SIGNS = np.where(CODES[:, None] == np.arange(3), 1.0, -1.0)
PROBLEM = Problem(Hinge(), 0.01, "free")


def objectives(threads=None, problem=PROBLEM, signs=SIGNS):
    data = as_dataset(X) if threads is None else as_dataset(X, threads=threads)
    return Objectives(problem, data, np.asfortranarray(signs))


@dataclass(frozen=True)
class Scripts:
    """Plays a list of (P, D) for each problem; problems are told apart by their number of positive rows."""

    evaluations: dict
    rows: str = "passes"
    started: list = field(default_factory=list)
    name: str = "scripts"

    @property
    def traits(self):
        return Traits(self.rows)

    def start(self, objective, run, previous=None):
        self.started.append(int((objective.y > 0).sum()))
        return ScriptState()

    def advance(self, objective, state):
        state.steps += 1
        state.epoch += 1.0
        return state

    def evaluate(self, objective, state):
        played = self.evaluations[int((objective.y > 0).sum())]
        primal, dual = played[min(state.steps, len(played)) - 1]
        return Evaluation(np.full(20, float(state.steps)), 0.0, primal, dual)

    def iterate(self, objective, state):
        return self.evaluate(objective, state)[:2]

    def observe(self, objective, state, evaluation):
        pass


POSITIVE = [int((column > 0).sum()) for column in SIGNS.T]


@pytest.mark.parametrize("rows", ["passes", "block"])
def test_each_has_its_own_best_point_bound_and_end(rows):
    script = Scripts(
        dict(
            zip(
                POSITIVE,
                [
                    [(2.0, 0.0), (1.0, 0.9999)],  # solved by the second
                    [(2.0, 0.5), (1.5, 0.8), (1.7, 0.9)],  # never
                    [(1.0, 1.5), (1.0, 1.5), (1.0, 1.5)],  # a bound above P is none
                ],
                strict=True,
            )
        ),
        rows,
    )
    first, second, third = drive(objectives(), Several(script), Stops(max_iter=3))
    assert first.status is Status.CONVERGED and first.n_epochs == 2 and first.w[0] == 2
    assert second.status is Status.MAX_ITER and second.n_epochs == 3 and second.w[0] == 2
    assert (second.certificate.primal, second.certificate.dual) == (1.5, 0.9)
    assert third.status is Status.MAX_ITER and third.certificate.gap < 0
    assert [len(one.trace) for one in (first, second, third)] == [2, 3, 3]


def test_problems_of_a_solver_with_matrices_wait_for_one_another():
    script = Scripts({n: [(1.0, 0.0), (1.0, 1.0)] for n in POSITIVE})
    with thread_pool(2) as threads:
        several = Several(script)
        posed = objectives(threads)
        state = several.start(posed, Run(1e-3, True, 10, 0), range(3), [None] * 3)
        assert len(script.started) == 2 and list(state.waiting) == [2]
        several.close(posed, state, 0)
        several.advance(posed, state)
        assert len(script.started) == 3 and not state.waiting


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize(
    "solver",
    [
        DualAscent(), Newton(), InteriorPoint(), Pegasos(),
        SolverSequence((Stage(JointAscent()), Stage(DualAscent()))),
    ],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_each_is_solved_as_it_would_be_alone(solver, n_jobs):
    tol = 1e-3 if isinstance(solver, Pegasos) else 1e-9
    with thread_pool(n_jobs) as threads:
        found = drive(objectives(threads), as_joint(solver), Stops(tol, 50_000))
    for signs, one in zip(SIGNS.T, found, strict=True):
        exact = solution_of(objective(PROBLEM, X, signs), Newton()).certificate
        assert one.status is Status.CONVERGED and one.certificate.relative_gap <= tol
        assert one.certificate.primal == pytest.approx(exact.primal, rel=1.1 * tol)


def test_a_time_limit_leaves_nothing_without_a_certificate():
    """Two problems are not even started: w = 0 is their solution so far, with P and D."""
    found = drive(objectives(), Several(Newton()), Stops(1e-12, max_seconds=1e-9))
    assert [one.status for one in found] == [Status.MAX_SECONDS] * 3
    assert not found[2].w.any() and found[2].certificate.primal <= 1.0 and found[2].certificate.dual == 0.0
    uncertified = drive(objectives(), Several(Newton()), Stops(1e-12, max_seconds=1e-9, certify=False))
    assert all(one.certificate is None and one.status is Status.MAX_SECONDS for one in uncertified)


def test_each_is_handed_over_on_its_own():
    """The second solver gets the problems that the first one leaves, and no others."""
    easy, hard = SIGNS[:, :1], np.where(np.random.default_rng(0).random(400) < 0.5, 1.0, -1.0)[:, None]
    posed = objectives(problem=Problem(Hinge(), 1e-3), signs=np.hstack([easy, hard]))
    solo = drive(posed, Several(DualAscent()), Stops(1e-9, 10_000))
    assert solo[0].state.operations < 0.8 * solo[1].state.operations
    budget = 0.5 * (solo[0].state.operations + solo[1].state.operations)
    both = SolverSequence((Stage(DualAscent(), budget), Stage(Newton())))
    found = drive(posed, both, Stops(1e-9, 10_000))
    assert [one.status for one in found] == [Status.CONVERGED] * 2
    assert [type(one.solver) for one in found] == [DualAscent, Newton]


def test_sweeps_over_all_problems_come_first():
    both = SolverSequence((Stage(JointAscent(), 0.0, 1.0), Stage(DualAscent(), 1e9), Stage(Newton())))
    found = drive(objectives(problem=Problem(Hinge(), 1e-5, "free")), both, Stops())
    for one in found:
        assert one.status is Status.CONVERGED
        assert one.trace["solver"].tolist()[0] == "dual_ascent"
        assert isinstance(one.solver, Newton)  # a forecast that excludes joint sweeps excludes single ones


def test_a_validation_set_stops_each_on_its_own():
    held_x, _ = noisy(100, 20, seed=5)
    held = Objectives(
        PROBLEM, as_dataset(held_x), np.asfortranarray(np.sign(np.random.default_rng(2).normal(size=(100, 3))))
    )
    found = drive(objectives(), Several(DualAscent()), Stops(1e-12, 200, patience=3), validation=held)
    assert all(np.isfinite(one.trace["validation_error"]).all() for one in found)
    assert {one.status for one in found} <= {Status.EARLY_STOPPING, Status.CONVERGED}
