"""The loop around solvers: every stop, what is kept, what is said, and going on from a pickled state."""

import pickle
import signal
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from primalsvm import DualAscent, Hinge, Logistic, Pegasos, Problem, Status, solve
from primalsvm.data import thread_pool
from primalsvm.objective import Evaluation
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.protocol import Run, Traits
from primalsvm.solvers.stops import Stops
from tests import reference
from tests.helpers import objective, solution_of
from tests.reference import noisy

M, D = 40, 3
X, Y = noisy(M, D)
PROBLEM = Problem(Hinge(), 0.01)
OBJECTIVE = objective(PROBLEM, X, Y)
BIG_X, BIG_Y = noisy(12_000, 10, seed=2)  # m·d ≥ 10⁵: `tol` is taken at its word
HARD = Problem(Hinge(), 1e-5, "free")


@dataclass
class ScriptState:
    epoch: float = 0.0
    steps: int = 0
    finished: bool = False
    worth_evaluating: bool = True
    operations: float = np.inf
    target: float = 0.0


@dataclass(frozen=True)
class Script:
    """A solver that plays a list of evaluations, one an epoch; each may come with something that happens."""

    evaluations: list
    events: dict = field(default_factory=dict)
    name: str = "script"
    fixed_steps: bool = False
    length: int | None = None

    @property
    def traits(self):
        return Traits("passes", fixed_steps=self.fixed_steps)

    def start(self, objective, run, previous=None):
        return ScriptState()

    def advance(self, objective, state):
        self.events.get(state.steps, lambda: None)()
        state.steps += 1
        state.epoch += 1.0
        state.finished = state.steps == self.length
        return state

    def evaluate(self, objective, state):
        primal, dual, w = self.evaluations[min(state.steps, len(self.evaluations)) - 1]
        return Evaluation(np.array(w), 0.0, primal, dual)

    def iterate(self, objective, state):
        return self.evaluate(objective, state)[:2]

    def observe(self, objective, state, evaluation):
        pass


def played(gaps, **options):
    """Points w = (k, 0, 0) with P = 1 + gap/2 and D = 1 − gap/2."""
    return Script([(1 + gap / 2, 1 - gap / 2, [k, 0.0, 0.0]) for k, gap in enumerate(gaps, start=1)], **options)


def run(solver, **stops):
    return solution_of(OBJECTIVE, solver, Stops(**stops))


# ---- stops -----------------------------------------------------------------------------------------------------------


def test_stops_at_the_first_gap_within_tol():
    found = run(played([0.5, 0.2, 0.05, 0.01]), tol=0.06)
    assert found.status is Status.CONVERGED and found.n_epochs == 3
    assert found.w[0] == 3 and found.certificate.gap == pytest.approx(0.05)
    assert found.message.startswith("converged after 3 epochs to a relative gap of 4.9e-02")


def test_stops_after_max_iter_epochs_and_says_how_far_it_is():
    found = run(played([0.5, 0.2, 0.1]), tol=1e-3, max_iter=2)
    assert found.status is Status.MAX_ITER and found.n_epochs == 2 and found.status.fell_short
    assert found.message.startswith("stopped after 2 epochs at a relative gap of 1.8e-01 > tol 1.0e-03: raise max_iter")


def test_stops_after_max_seconds():
    events = {k: lambda: time.sleep(0.02) for k in range(1000)}
    begin = time.perf_counter()
    found = run(played([0.5], events=events), tol=1e-3, max_seconds=0.1)
    assert found.status is Status.MAX_SECONDS and 3 <= found.n_epochs <= 6
    assert 0.1 <= found.seconds <= time.perf_counter() - begin
    assert "stopped after 0.1 seconds" in found.message and "relative gap of 4.0e-01" in found.message


def test_a_solver_that_is_done_is_finished():
    found = run(played([0.5, 0.2], length=2, fixed_steps=True), tol=1e-3, max_iter=1)
    assert found.status is Status.FINISHED and found.n_epochs == 2
    assert found.message == "finished after 2 epochs at a relative gap of 1.8e-01 > tol 1.0e-03"


def test_a_self_paced_solver_goes_on_beyond_tol():
    assert run(played([0.01, 0.01, 0.01], length=3, fixed_steps=True), tol=0.1).n_epochs == 3


def test_the_best_point_and_the_best_bound_are_kept():
    script = Script([(1.5, 0.1, [1, 0, 0]), (1.1, 0.9, [2, 0, 0]), (1.3, 0.95, [3, 0, 0])])
    found = run(script, tol=1e-3, max_iter=3)
    assert found.w[0] == 2
    assert (found.certificate.primal, found.certificate.dual) == (1.1, 0.95)


def test_a_validation_set_stops_early_and_keeps_its_best_point():
    # On the first axis, rows at ±1: w = (−1,) errs everywhere, (1,) nowhere, (0,) on +1 (a score of 0 predicts −1).
    held = objective(PROBLEM, np.array([[1.0, 0, 0], [-1.0, 0, 0]]), [1, -1])
    script = Script([(2.0, 0.0, [-1, 0, 0]), (1.9, 0.0, [1, 0, 0]), (1.5, 0.0, [-1, 0, 0]), (1.0, 0.0, [0, 0, 0])])
    found = solution_of(OBJECTIVE, script, Stops(patience=2), validation=held)
    assert found.status is Status.EARLY_STOPPING and found.n_epochs == 4
    assert found.w[0] == 1 and found.certificate.primal == 1.9
    assert found.trace["validation_error"].tolist() == [1.0, 0.0, 1.0, 0.5]
    assert "validation error has not fallen for 2 evaluations" in found.message


def test_validation_weights_count():
    held = objective(PROBLEM, np.array([[1.0, 0, 0], [-1.0, 0, 0]]), [1, 1], [3.0, 1.0])
    found = solution_of(OBJECTIVE, played([0.5]), Stops(max_iter=1), validation=held)
    assert found.trace["validation_error"].tolist() == [0.25]


def test_validation_works_without_certificates():
    held = objective(PROBLEM, np.array([[1.0, 0, 0]]), [1])
    script = Script([(np.nan, np.nan, [-1, 0, 0]), (np.nan, np.nan, [1, 0, 0]), (np.nan, np.nan, [-1, 0, 0])])
    found = solution_of(OBJECTIVE, script, Stops(certify=False, patience=3), validation=held)
    assert found.status is Status.EARLY_STOPPING and found.w[0] == 1 and found.certificate is None


def test_a_validation_set_of_other_width_is_refused():
    with pytest.raises(ValueError, match="validation rows have another number of features"):
        solve(PROBLEM, X, Y, validation=(X[:, :2], Y))


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def usual_ctrl_c():
    """Python's own handler, whatever the test runner has installed."""
    assert threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # given back after the solve
    signal.signal(signal.SIGINT, previous)


def press():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("usual_ctrl_c")
def test_ctrl_c_keeps_the_best_so_far():
    script = Script([(1.5, 0.1, [1, 0, 0]), (1.1, 0.9, [2, 0, 0]), (1.3, 0.95, [3, 0, 0])], events={2: press})
    found = run(script, tol=1e-3)
    assert found.status is Status.INTERRUPTED and found.n_epochs == 3
    assert found.w[0] == 2 and found.certificate.primal == 1.1
    assert found.message.startswith("interrupted after 3 epochs at a relative gap of 1.4e-01 > tol 1.0e-03: the best")


@pytest.mark.usefixtures("usual_ctrl_c")
def test_the_second_ctrl_c_raises():
    def twice():
        press()
        press()

    with pytest.raises(KeyboardInterrupt):
        run(played([0.5], events={1: twice}))


@pytest.mark.usefixtures("usual_ctrl_c")
@pytest.mark.parametrize("solver", [DualAscent(), Pegasos()])
def test_ctrl_c_in_the_middle_of_real_work(solver):
    timer = threading.Timer(0.5, press)
    timer.start()
    found = solve(HARD, BIG_X, BIG_Y, solver=solver, tol=1e-15, max_iter=10**8, max_seconds=60)
    timer.join()
    assert found.status is Status.INTERRUPTED and found.seconds < 30
    assert found.certificate.primal == pytest.approx(reference.primal(HARD, BIG_X, BIG_Y, found.w, found.b), rel=1e-12)
    assert found.certificate.primal == found.trace["primal"].min()


def test_in_other_threads_nothing_is_installed():
    found = []
    thread = threading.Thread(target=lambda: found.append(run(played([1e-9]))))
    thread.start()
    thread.join()
    assert found[0].status is Status.CONVERGED


def test_somebody_elses_handler_stays():
    mine = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        script = played([0.5, 0.4, 1e-9], events={0: press})
        assert run(script).status is Status.CONVERGED  # theirs was called, not ours
    finally:
        signal.signal(signal.SIGINT, mine)


# ---- what is recorded ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [DualAscent(), Newton(), Pegasos()])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_trace_is_one_row_per_evaluation(solver, intercept):
    found = solve(Problem(Hinge(), 1e-3, intercept), BIG_X, BIG_Y, solver=solver, tol=1e-3, max_iter=50)
    trace = found.trace
    assert trace.dtype.names[:6] == ("epoch", "steps", "seconds", "primal", "dual", "gap")
    assert len(trace) >= 1 and np.isnan(trace["validation_error"]).all()
    assert trace["epoch"][-1] == found.n_epochs and trace["steps"][-1] == found.n_steps
    for column in ("epoch", "steps", "seconds"):
        assert (np.diff(trace[column]) >= 0).all()
    np.testing.assert_allclose(trace["gap"], trace["primal"] - trace["dual"])
    assert (trace["gap"] >= -1e-12 * trace["primal"]).all()  # never negative beyond rounding
    assert found.certificate.primal == trace["primal"].min() and found.certificate.dual == trace["dual"].max()


def test_evaluations_of_dual_ascent_stay_under_a_fifth_of_the_epochs():
    found = solve(HARD, BIG_X, BIG_Y, solver=DualAscent(shrinking=False), tol=1e-12, max_iter=100)
    assert found.status is Status.MAX_ITER
    assert len(found.trace) <= 100 / 5 + 1


@pytest.mark.parametrize("solver", [DualAscent(), Newton(), Pegasos(), Pegasos(n_iter=2000)])
def test_without_certificate(solver):
    found = solve(Problem(Hinge(), 1e-2), X, Y, solver=solver, certify=False, max_iter=30)
    assert found.certificate is None and np.isfinite(found.w).all()
    assert "not certified" in found.message
    assert reference.primal(Problem(Hinge(), 1e-2), X, Y, found.w) < 1.0  # better than w = 0 all the same
    assert (found.trace["dual"] == -np.inf).all()


@pytest.mark.parametrize("solver", [DualAscent(), Newton()])
def test_without_certificate_the_solvers_own_estimate_stops(solver):
    problem = Problem(Hinge(), 1e-2)
    found = solve(problem, X, Y, solver=solver, certify=False, tol=1e-3)
    assert found.status is Status.FINISHED and found.n_epochs < 500
    optimum = solve(problem, X, Y, solver=Newton()).certificate
    assert optimum.relative_gap <= 1e-10
    assert reference.primal(problem, X, Y, found.w) <= optimum.primal * (1 + 5e-3)


@pytest.mark.parametrize("solver", [DualAscent(), Newton()])
def test_small_problems_are_solved_to_1e_10(solver):
    found = solve(Problem(Logistic(), 0.01), X, Y, solver=solver, tol=0.5)
    assert found.certificate.relative_gap <= 1e-10


@pytest.mark.parametrize("solver", [DualAscent(), Newton(), Pegasos()])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_seed_same_bits(solver, n_jobs):
    problem = Problem(Hinge(), 1e-3, "free")
    one, two = (
        solve(problem, BIG_X, BIG_Y, solver=solver, tol=1e-2, n_jobs=n_jobs, random_state=3, max_iter=20)
        for _ in range(2)
    )
    assert one.w.tobytes() == two.w.tobytes() and one.b == two.b and one.certificate == two.certificate


def test_another_seed_another_way():
    one, two = (solve(HARD, BIG_X, BIG_Y, solver=DualAscent(), tol=1e-1, random_state=s) for s in (1, 2))
    assert one.w.tobytes() != two.w.tobytes()


# ---- going on --------------------------------------------------------------------------------------------------------

SOLVERS = [
    DualAscent(),
    Newton(),
    Pegasos(),
    Pegasos(sampling="iid", average="random", n_iter=60_000),
    Pegasos(sampling="distinct", batch_size=7, average="uniform", projection=True),
    Pegasos(sampling="epochs", average="suffix", n_iter=60_000, tries=3),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_pickled_state_goes_on_with_the_same_bits(solver, threads):
    problem = Problem(Hinge(), 1e-3, "free")
    run_ = Run(target=1e-9, certify=True, max_iter=1000, seed=4)

    def points(pickled_after):
        with thread_pool(threads) as pool:
            own = objective(problem, BIG_X, BIG_Y, threads=pool)
            state = solver.start(own, run_)
            for k in range(8):
                if state.finished:
                    break
                if k == pickled_after:
                    state = pickle.loads(pickle.dumps(state))
                state = solver.advance(own, state)
                if state.worth_evaluating:
                    evaluation = solver.evaluate(own, state)
                    if hasattr(solver, "observe"):
                        solver.observe(own, state, evaluation)
            w, b = solver.iterate(own, state)
            return w.tobytes(), b, state.steps

    through = points(None)
    assert [points(k) for k in (1, 3)] == [through, through]


@pytest.mark.parametrize("solver", [DualAscent(), Newton(), Pegasos(n_iter=5000)])
def test_a_solution_pickles(solver):
    found = solve(PROBLEM, X, Y, solver=solver, max_iter=20)
    again = pickle.loads(pickle.dumps(found))
    assert again.w.tobytes() == found.w.tobytes() and again.certificate == found.certificate
    assert again.status is found.status
    one, two = (solve(PROBLEM, X, Y, solver=solver, start=start, max_iter=20) for start in (found, again))
    assert one.w.tobytes() == two.w.tobytes()


def test_going_on_does_not_touch_the_solution_it_starts_from():
    for solver in (DualAscent(), Newton(), Pegasos(n_iter=5000)):
        start = solve(PROBLEM, X, Y, solver=solver, max_iter=5)
        before = pickle.dumps(start)
        solve(PROBLEM, X, Y, solver=solver, start=start, max_iter=5)
        assert pickle.dumps(start) == before


# ---- choices and refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stops", "message"),
    [
        ({"tol": 0.0}, "tol must be positive"),
        ({"tol": np.nan}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"max_seconds": 0.0}, "max_seconds must be positive"),
        ({"max_seconds": np.nan}, "max_seconds must be positive"),
        ({"patience": 0}, "patience must be at least 1"),
    ],
)
def test_bad_stops_are_refused(stops, message):
    with pytest.raises(ValueError, match=message):
        Stops(**stops)


def test_labels_must_be_plus_and_minus_one():
    with pytest.raises(ValueError, match="labels -1 and \\+1"):
        solve(PROBLEM, X, Y > 0)


def test_validation_labels_are_checked():
    with pytest.raises(ValueError, match="labels -1 and \\+1"):
        solve(PROBLEM, X, Y, validation=(X, (Y + 1) / 2))


@pytest.mark.parametrize("solver", [Pegasos, None, 3])
def test_a_solver_that_is_none(solver):
    with pytest.raises(TypeError, match="solver must be a name or a solver object"):
        solve(PROBLEM, X, Y, solver=solver)


@pytest.mark.parametrize("loss", ["hinge", Hinge])
def test_a_loss_that_is_none(loss):
    with pytest.raises(TypeError, match="loss must be a loss object"):
        Problem(loss, 0.1)
