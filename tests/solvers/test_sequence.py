"""Solvers in sequence: the hand-over, what the history shows of it, and forecasts."""

import math
import pickle

import numpy as np
import pytest

from primalsvm import DualAscent, Hinge, InteriorPoint, Newton, Problem, Status, solve
from primalsvm.solvers import sequence
from primalsvm.solvers.sequence import Mark, SolverSequence, Stage, forecast
from tests.reference import noisy

X, Y = noisy(800, 150)
HARD = X * np.geomspace(0.01, 100.0, 150)
PROBLEM = Problem(Hinge(), 1e-6, "free")
FORECASTS = {DualAscent(): 1.0}


def handing_over(*solvers):
    """Each after its first chunk, or its first forecast."""
    return SolverSequence((*(Stage(one, 0.0, FORECASTS.get(one)) for one in solvers[:-1]), Stage(solvers[-1])))


@pytest.mark.parametrize(
    "solvers",
    [(DualAscent(), Newton()), (DualAscent(), InteriorPoint()), (DualAscent(), Newton(), InteriorPoint())],
)
def test_each_goes_on_where_the_one_before_was(solvers):
    found = solve(PROBLEM, HARD, Y, solver=handing_over(*solvers))
    alone = solve(PROBLEM, HARD, Y, solver=InteriorPoint())
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-3)
    names = found.trace["solver"].tolist()
    assert [name for k, name in enumerate(names) if name not in names[:k]] == [one.name for one in solvers]
    assert np.all(np.diff(found.trace["epoch"]) >= 0) and np.all(np.diff(found.trace["steps"]) >= 0)
    assert found.solver == solvers[-1]


def test_the_best_bound_of_all_solvers_counts():
    found = solve(PROBLEM, HARD, Y, solver=handing_over(DualAscent(), Newton()))
    assert found.certificate.dual == found.trace["dual"].max()


def test_one_that_gets_there_does_not_hand_over():
    easy = Problem(Hinge(), 1.0, "free")
    first = SolverSequence((Stage(DualAscent(), 1e9, 1e5), Stage(Newton())))
    found = solve(easy, X, Y, solver=first)
    assert set(found.trace["solver"]) == {"dual_ascent"} and found.status is Status.CONVERGED


def test_one_that_rounding_has_stopped_hands_over():
    single = solve(Problem(Hinge(), 1e-12, "free"), HARD, Y, solver=Newton(), max_iter=400)
    assert single.status is not Status.CONVERGED
    both = SolverSequence((Stage(Newton(), 1e9), Stage(InteriorPoint())))
    assert solve(Problem(Hinge(), 1e-12, "free"), HARD, Y, solver=both).status is Status.CONVERGED


def test_a_state_can_be_pickled_and_gone_on_from():
    solver = handing_over(DualAscent(), Newton())
    first = solve(PROBLEM, HARD, Y, solver=solver, tol=0.5)
    again = solve(PROBLEM, HARD, Y, solver=solver, start=pickle.loads(pickle.dumps(first)))
    assert again.status is Status.CONVERGED and again.trace["solver"][0] == first.trace["solver"][-1]


def test_warm_starts_between_a_sequence_and_its_solvers():
    both = SolverSequence((Stage(DualAscent(), 0.0, 1.0), Stage(Newton())))
    first = solve(PROBLEM, HARD, Y, solver=both)
    for solver in (Newton(), both, SolverSequence((Stage(Newton(), 1e12), Stage(InteriorPoint())))):
        again = solve(PROBLEM, HARD, Y, solver=solver, start=first)
        assert set(again.trace["solver"]) == {"newton"} and again.n_steps < 0.5 * first.state.state.steps


def test_early_stopping_gives_the_next_solver_its_chance():
    """It begins anew, at worse points than those that were handed over."""
    solver = handing_over(DualAscent(), InteriorPoint())
    found = solve(PROBLEM, HARD, Y, solver=solver, validation=(HARD, Y), patience=2)
    assert found.trace["solver"][-1] == "interior_point" and np.sum(found.trace["solver"] == "interior_point") > 2


@pytest.mark.parametrize("solvers", [(DualAscent(), Newton()), (DualAscent(), InteriorPoint())])
def test_it_ends_without_certificates_too(solvers):
    found = solve(PROBLEM, HARD, Y, solver=handing_over(*solvers), certify=False, max_iter=5000)
    assert found.status is Status.FINISHED and found.certificate is None


def test_one_bad_forecast_may_be_chance(monkeypatch):
    forecasts = [1e30, 0.0, 1e30, 1e30]
    asked = []

    def forecast_of(before, now, target):
        asked.append(now.operations)
        return forecasts[min(len(asked), len(forecasts)) - 1]

    monkeypatch.setattr(sequence, "forecast", forecast_of)
    both = SolverSequence((Stage(DualAscent(), 1e12, 1.0), Stage(Newton())))
    found = solve(PROBLEM, HARD, Y, solver=both)
    assert len(asked) == 4 and set(found.trace["solver"]) == {"dual_ascent", "newton"}


def test_the_same_bits_every_time():
    one, two = (solve(PROBLEM, HARD, Y, solver="auto") for _ in range(2))
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(one.trace["solver"], two.trace["solver"])


def test_the_name_says_which():
    assert repr(handing_over(DualAscent(), Newton())) == "SolverSequence(dual_ascent, newton)"


# ---- forecasts -------------------------------------------------------------------------------------------------------


def test_a_gap_that_falls_like_a_power_is_forecast():
    marks = [Mark(w, 1.0, 1.0 - 0.4 * w**-2.0) for w in (2.0, 3.0)]
    needed = math.sqrt(0.4 / 1e-3) - 3.0
    assert 0.2 * needed <= forecast(*marks, 1e-3) <= needed  # it might as well fall exponentially: the sooner counts


def test_a_primal_that_falls_exponentially_is_forecast():
    """As separable rows have it: D is there, P falls by a tenth each time."""
    marks = [Mark(w, 0.9**w, 1e-8) for w in (20.0, 30.0)]
    needed = math.log(1e-8) / math.log(0.9) - 30.0
    assert 0.8 * needed <= forecast(*marks, 1e-3) <= 2.0 * needed


def test_a_dual_that_has_a_long_way_to_go_is_forecast():
    """As overlapping rows have it with weak regularisation: P is there, D grows with the work."""
    marks = [Mark(w, 0.35, 1e-4 * w) for w in (4.0, 6.0)]
    assert forecast(*marks, 1e-3) >= 0.5 * 0.35 / 1e-4 - 6.0


def test_where_nothing_is_known_as_much_again_is_needed():
    assert forecast(Mark(1.0, 2.0, -5.0), Mark(2.0, 1.0, -3.0), 1e-3) == 2.0


def test_the_target_is_reached():
    assert forecast(Mark(1.0, 1.0, 0.5), Mark(2.0, 1.0, 0.9995), 1e-3) == 0.0
