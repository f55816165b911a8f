"""`svm_path`: every point against a solve of its own, and its certificate against plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from primalsvm import DualAscent, EpsilonInsensitive, Newton, Problem, Status, solve, svm_path
from primalsvm.data import as_dataset
from primalsvm.labels import class_signs
from primalsvm.losses import Hinge
from primalsvm.objective import Objectives
from primalsvm.solvers.costs import Size
from primalsvm.solvers.path import follow, largest_lam
from primalsvm.solvers.policy import choose
from primalsvm.solvers.screening import PathMemory, PathStart
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.several import LastStage, Several, Single
from primalsvm.solvers.stops import Stops
from primalsvm.solvers.watched import Watched
from tests.helpers import objective
from tests.reference import LOSSES, noisy, primal, sparse_noisy, weights

LAMS = np.geomspace(1.0, 1e-4, 9)
LARGE = sparse_noisy(3000, 60)  # more than a problem that is solved to 1e-10 anyway


def certified(path, X, y, problem_at, c=None):
    """Every certificate is of exactly the point beside it."""
    for lam, w, b, proof in zip(path.lams, path.coefs, path.intercepts, path.certificates, strict=True):
        assert proof.primal == pytest.approx(primal(problem_at(lam), X, y, w, b, c), rel=1e-9)
        assert proof.dual <= proof.primal + 1e-9


@pytest.mark.parametrize("solver", [DualAscent(), DualAscent(shrinking=False), Newton()])
@pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
def test_points_are_those_of_solves_on_their_own(intercept, solver):
    X, y = LARGE
    c = weights(len(y))
    path = svm_path(
        X, y, LAMS, sample_weight=c, fit_intercept=intercept != "none", penalize_intercept=intercept == "penalized",
        solver=solver, tol=1e-3,
    )  # fmt: skip
    certified(path, X, y, lambda lam: Problem(Hinge(), lam, intercept), c)
    assert path.statuses == [Status.CONVERGED] * len(LAMS)
    for lam, proof in zip(LAMS, path.certificates, strict=True):
        assert proof.relative_gap <= 1e-3
        alone = solve(Problem(Hinge(), lam, intercept), X, y, sample_weight=c, solver=Newton(), tol=1e-8)
        assert alone.certificate.dual * (1 - 1e-9) <= proof.primal <= (1 + 1.1e-3) * alone.certificate.primal


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_to_machine_precision(loss):
    X, y = noisy(120, 6)
    for solver in (DualAscent(), Newton()):
        path = svm_path(X, y, LAMS[:6], loss=loss, solver=solver, max_iter=20_000)
        assert max(proof.relative_gap for proof in path.certificates) < 1e-9
        certified(path, X, y, lambda lam: Problem(loss, lam, "free"))


@settings(max_examples=10)
@given(order=st.permutations(range(6)))
def test_the_order_of_the_lams_does_not_matter(order):
    X, y = sparse_noisy(300, 40)
    order = np.array(order)
    path, same = svm_path(X, y, LAMS[:6], solver="dual_ascent"), svm_path(X, y, LAMS[order], solver="dual_ascent")
    assert np.array_equal(same.lams, LAMS[order])
    assert np.array_equal(same.coefs, path.coefs[order])
    assert [proof.primal for proof in same.certificates] == [path.certificates[k].primal for k in order]


@pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("shift", [-np.inf, 0.0, np.inf])
def test_rows_that_are_wrongly_screened_out_are_found_by_the_certificate(shift, n_jobs, intercept):
    """Predicted scores may be wrong: all rows inside the margin, no row, or those that were before."""
    X, y = LARGE
    c = weights(len(y))
    problem = Problem(Hinge(), 1e-3, intercept)
    before = solve(Problem(Hinge(), 1e-1, intercept), X, y, sample_weight=c, solver=DualAscent())
    state = before.state
    scores = np.nan_to_num(state.scores + y * shift, posinf=1e3, neginf=-1e3)
    begin = PathStart(state.alpha, state.centre, state.v, state.norms, scores, slack=0.01, gap_ratio=1.0)
    found = solve(
        problem, X, y, sample_weight=c, solver=DualAscent(), start=replace(before, state=begin), n_jobs=n_jobs
    )
    assert found.status is Status.CONVERGED and found.certificate.relative_gap <= 1e-3
    assert found.certificate.primal == pytest.approx(primal(problem, X, y, found.w, found.b, c), rel=1e-9)
    assert found.state.v == pytest.approx(X.T @ (c * found.state.alpha), abs=1e-9)
    assert found.state.dual_sum == pytest.approx(c @ (y * found.state.alpha))


def test_points_begin_where_the_last_ones_lead_to():
    X, y = sparse_noisy(20_000, 2_000, density=0.02)
    lams = np.geomspace(1e-2, 1e-4, 8)
    path = svm_path(X, y, lams, solver="dual_ascent")
    alone = [solve(Problem(Hinge(), lam, "free"), X, y, solver="dual_ascent") for lam in lams]
    visits = sum(one.n_steps for one in alone)
    given = Single(objective(Problem(Hinge(), 1.0, "free"), X, y))
    sequence = SolverSequence((Stage(DualAscent()), Stage(Newton())))
    for solver in (Several(DualAscent()), Several(Watched(DualAscent(), (1,))), sequence):
        points = follow(given, lams, solver, Stops())
        assert sum(point[0].n_steps for _, point in points) < 0.5 * visits
    assert max(proof.relative_gap for proof in path.certificates) <= 1e-3


def test_scores_are_extrapolated_in_log_lam():
    X, y = noisy(20, 3)
    solver = DualAscent()
    states = [solve(Problem(Hinge(), lam, "free"), X, y, solver=solver).state for lam in (1.0, 0.1)]
    first, memory = solver.path_start(states[0], None, 0.1)
    np.testing.assert_array_equal(first.scores, states[0].scores)
    assert first.slack == 0.1 and memory == PathMemory(1.0, states[0].scores, states[0].centre, first.scores)
    second, memory = solver.path_start(states[1], memory, 0.1 / np.sqrt(10.0))
    np.testing.assert_allclose(second.scores, states[1].scores + 0.5 * (states[1].scores - states[0].scores))
    assert second.centre == pytest.approx(states[1].centre + 0.5 * (states[1].centre - states[0].centre))
    error = np.sqrt(np.mean((states[1].scores - states[0].scores) ** 2))
    assert second.slack == pytest.approx(1.5 * error)
    far, _ = solver.path_start(states[1], PathMemory(1.0, states[0].scores, states[0].centre, first.scores), 1e-3)
    np.testing.assert_allclose(far.scores, 2.0 * states[1].scores - states[0].scores)  # no farther than the last step
    assert far.slack == pytest.approx(2.0 * 1.5 * error)
    assert DualAscent(shrinking=False).path_start(states[1], None, 0.01) == (states[1], None)


@pytest.mark.parametrize("solver", ["dual_ascent", "newton", "auto"])
def test_several_problems_begin_where_the_last_point_ended(solver):
    X, _ = sparse_noisy(3000, 60)
    codes = np.asarray(X[:, :3].todense()).argmax(axis=1)
    data = as_dataset(X)
    given = Objectives(Problem(Hinge(), 1.0, "free"), data, class_signs(codes, 3))
    chosen = choose(solver, Size.of(data), Hinge(), count=3, jointly=True)
    points = dict(follow(given, LAMS[2:6], chosen, Stops(1e-6)))
    assert list(points) == LAMS[2:6].tolist()
    for lam, point in points.items():
        for k, one in enumerate(point):
            own = given.with_lam(lam)[k]
            assert one.status is Status.CONVERGED and one.certificate.relative_gap <= 1e-6
            assert own.value(one.w, one.b) == pytest.approx(one.certificate.primal, rel=1e-12)
            assert isinstance(one.state, LastStage) == (solver != "newton")


def test_irregular_and_repeated_lams():
    X, y = LARGE
    lams = [1e-4, 1.0, 0.999, 1e-4, 1e-3]
    path = svm_path(X, y, lams, solver="dual_ascent")
    assert max(proof.relative_gap for proof in path.certificates) <= 1e-3
    certified(path, X, y, lambda lam: Problem(Hinge(), lam, "free"))
    assert np.array_equal(path.coefs[0], path.coefs[3])


def test_the_first_default_lam_has_the_solution_that_is_told():
    X, y = noisy(200, 5)
    path = svm_path(X, y, fit_intercept=False)
    g = X.T @ y / len(y)
    assert len(path.lams) == 20 and path.lams[0] == pytest.approx(np.abs(X @ g).max())
    assert path.lams[-1] == pytest.approx(1e-4 * path.lams[0])
    reach = np.sqrt(2 * path.certificates[0].gap / path.lams[0])  # P is λ-strongly convex
    assert np.linalg.norm(path.coefs[0] - g / path.lams[0]) <= reach + 1e-12 < 1e-4


def test_rows_without_weight_do_not_count_for_the_strongest_lam():
    X, y = noisy(50, 4)
    heavy = np.vstack([X, [[1e3, 0, 0, 0]]]), np.append(y, 1.0), np.append(np.ones(50), 0.0)
    for intercept in ("none", "penalized", "free"):
        problem = Problem(Hinge(), 1.0, intercept)
        assert largest_lam(objective(problem, *heavy)) == pytest.approx(largest_lam(objective(problem, X, y)))


def test_weights_are_repetitions_and_zero_is_no_row():
    X, y = noisy(60, 5)
    c = np.arange(60) % 3
    weighted = svm_path(X, y, LAMS[:5], sample_weight=c)
    repeated = svm_path(np.repeat(X, c, axis=0), np.repeat(y, c), LAMS[:5])
    for one, other in zip(weighted.certificates, repeated.certificates, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=1e-8)


def test_names_of_classes_and_more_than_two():
    X, y = noisy(150, 4)
    named = svm_path(X, np.where(y > 0, "yes", "no"), LAMS[:3])
    assert named.classes.tolist() == ["no", "yes"]
    assert np.array_equal(named.coefs, svm_path(X, y, LAMS[:3]).coefs)
    three = np.digitize(X[:, 0], [-0.3, 0.3])
    path = svm_path(X, three, LAMS[:3])
    assert path.coefs.shape == (3, 3, 4) and path.intercepts.shape == (3, 3)
    for k in range(3):
        alone = svm_path(X, np.where(three == k, 1, -1), LAMS[:3])
        for proofs, own in zip(path.certificates, alone.certificates, strict=True):
            assert proofs[k].primal == pytest.approx(own.primal, rel=1e-8)


def test_regression():
    X, _ = noisy(150, 4)
    y = X @ np.arange(4.0)
    path = svm_path(X, y, LAMS[:4], loss=EpsilonInsensitive(0.1))
    assert path.classes is None and max(proof.relative_gap for proof in path.certificates) <= 1e-3


def test_threads_give_a_certified_path():
    X, y = LARGE
    path = svm_path(X, y, LAMS, solver="dual_ascent", n_jobs=2)
    assert max(proof.relative_gap for proof in path.certificates) <= 1e-3
    certified(path, X, y, lambda lam: Problem(Hinge(), lam, "free"))


def test_verbose_prints_a_line_a_point(capsys):
    svm_path(*noisy(30, 3), LAMS[:3], verbose=1)
    assert capsys.readouterr().out.count("svm_path: lam ") == 3


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"lams": []}, ValueError, "lams must be a vector of at least one number"),
        ({"lams": 1.0}, ValueError, "lams must be a vector"),
        ({"lams": [1.0, 0.0]}, ValueError, "lams must be positive and finite, got 0.0"),
        ({"lams": [np.nan]}, ValueError, "lams must be positive"),
        ({"lams": ["a"]}, TypeError, "lams must be a vector of numbers"),
        ({"y": np.ones(30)}, ValueError, "one class only"),
        ({"y": np.full(30, np.nan)}, ValueError, "NaN"),
        ({"y": np.ones((30, 2))}, ValueError, "vector of classes"),
        ({"y": np.ones(29)}, ValueError, "X has 30 rows but y has shape"),
        ({"y": np.ones(29), "loss": EpsilonInsensitive(0.1)}, ValueError, "X has 30 rows but y has shape"),
        ({"tol": 0.0}, ValueError, "tol must be positive"),
        ({"loss": "none"}, ValueError, "not known"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(changed, error, sentence):
    X, y = noisy(30, 3)
    with pytest.raises(error, match=sentence):
        svm_path(**{"X": X, "y": y, "lams": [1.0], **changed})


def test_a_class_without_weight_is_absent():
    X, y = load_iris(return_X_y=True)
    path = svm_path(X, y, [1.0, 0.1], sample_weight=(y > 0).astype(float))
    without = svm_path(X[y > 0], y[y > 0], [1.0, 0.1])
    assert path.classes.tolist() == [1, 2]
    np.testing.assert_allclose(path.coefs, without.coefs, atol=1e-5)
