"""The problem: P, its subgradient and D are the formulas; D never exceeds P."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from primalsvm import objective as objective_file
from primalsvm.data import ALONE, KernelMatrix, as_block, as_dataset, as_weights
from primalsvm.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Pinball, SquaredHinge
from primalsvm.maps.kernels import Gaussian, as_points
from primalsvm.objective import Problem, check_both_signs, mean_row
from tests import reference
from tests.helpers import objective
from tests.reference import LOSSES, noisy, weights

M, D = 30, 4
X, Y = noisy(M, D)
WEIGHTS = {"plain": None, "weighted": weights(M)}
DATA = {kind: as_dataset(X, c) for kind, c in WEIGHTS.items()}
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
each_intercept = pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
each_weight = pytest.mark.parametrize("kind", list(WEIGHTS))

vectors = arrays(np.float64, D, elements=st.floats(-20, 20))
biases = st.floats(-5, 5)
thetas = arrays(np.float64, M, elements=st.floats(0, 1))


def intercept_of(problem, b):
    return 0.0 if problem.intercept == "none" else b


@each_loss
@each_intercept
@each_weight
def test_value_and_subgradient_are_the_formulas(loss, intercept, kind):
    problem = Problem(loss, 0.05, intercept)
    rng = np.random.default_rng(3)
    for _ in range(5):
        w, b = rng.normal(size=D) * 3, intercept_of(problem, rng.normal())
        assert problem.on(DATA[kind], Y).value(w, b) == pytest.approx(
            reference.primal(problem, X, Y, w, b, WEIGHTS[kind]), rel=1e-13
        )
        in_w, in_b = problem.on(DATA[kind], Y).subgradient(w, b)
        true_w, true_b = reference.subgradient(problem, X, Y, w, b, WEIGHTS[kind])
        np.testing.assert_allclose(in_w, true_w, rtol=1e-12, atol=1e-14)
        assert in_b == pytest.approx(true_b, rel=1e-12, abs=1e-14)


@each_loss
@each_intercept
@each_weight
def test_lower_bound_is_the_formula(loss, intercept, kind):
    problem = Problem(loss, 0.05, intercept)
    own, c = problem.on(DATA[kind], Y), WEIGHTS[kind]
    alpha = Y * np.random.default_rng(4).random(M)
    allowed = own.balance_alpha(alpha)
    assert own.lower_bound(alpha) == pytest.approx(reference.dual(problem, X, Y, allowed, c), rel=1e-12)
    evaluation = own.evaluate_dual(alpha)
    cc = np.ones(M) if c is None else c
    np.testing.assert_allclose(evaluation.w, X.T @ (cc * allowed) / (0.05 * cc.sum()), rtol=1e-12, atol=1e-13)
    assert evaluation.primal == pytest.approx(reference.primal(problem, X, Y, evaluation.w, evaluation.b, c), rel=1e-13)
    assert evaluation.dual == pytest.approx(own.lower_bound(alpha), rel=1e-13)


@each_loss
@each_intercept
@given(w=vectors, b=biases, theta=thetas, kind=st.sampled_from(list(WEIGHTS)))
def test_dual_never_exceeds_primal(loss, intercept, w, b, theta, kind):
    problem = Problem(loss, 0.05, intercept)
    primal = reference.primal(problem, X, Y, w, intercept_of(problem, b), WEIGHTS[kind])
    assert problem.on(DATA[kind], Y).lower_bound(Y * theta) <= primal + 1e-12 * (1 + abs(primal))


@each_loss
@given(theta=thetas, kind=st.sampled_from(list(WEIGHTS)), lean=st.sampled_from([0.0, 1.0]))
def test_balanced_is_feasible_and_sums_to_zero(loss, theta, kind, lean):
    problem = Problem(loss, 0.05, "free")
    alpha = Y * np.where(Y > 0, np.maximum(theta, lean), theta * (1 - lean))  # lean = 1: as unbalanced as can be
    out = problem.on(DATA[kind], Y).balance_alpha(alpha)
    c = np.ones(M) if WEIGHTS[kind] is None else WEIGHTS[kind]
    assert abs(c @ out) <= 1e-13 * c.sum()
    assert all(np.isfinite(loss.conjugate(-a, y)) for a, y in zip(out, Y, strict=True))


@each_loss
def test_balanced_leaves_a_balanced_point_where_it_is(loss):
    theta = np.random.default_rng(0).uniform(0.2, 0.8, size=M)
    for sign in (-1, 1):
        theta[sign == Y] /= theta[sign == Y].sum() / 3
    balanced = Problem(loss, 0.05, "free").on(DATA["plain"], Y).balance_alpha(Y * theta)
    np.testing.assert_allclose(balanced, Y * theta, atol=1e-14)


@pytest.mark.parametrize("intercept", ["none", "penalized"])
def test_without_free_intercept_nothing_is_balanced(intercept):
    assert Problem(Hinge(), 0.05, intercept).on(DATA["plain"], Y).balance_alpha(Y) is Y


@each_loss
@given(w=vectors, kind=st.sampled_from(list(WEIGHTS)))
def test_best_intercept_is_the_best(loss, w, kind):
    problem = Problem(loss, 0.05, "free")
    scores = X @ w

    def cost(b):
        return reference.primal(problem, X, Y, w, b, WEIGHTS[kind])

    reach = 60 + np.abs(scores).max()
    sought = minimize_scalar(cost, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-12})
    best = cost(problem.on(DATA[kind], Y).best_intercept(scores))
    assert best <= sought.fun + 1e-13 * (1 + abs(sought.fun))
    if isinstance(loss, Hinge):  # exact: the minimum is at a break point
        assert best == pytest.approx(min(cost(b) for b in Y - scores), rel=1e-13)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()])
@pytest.mark.parametrize(
    ("scores", "y", "middle"),
    [
        ([2.0, -1.0], [1, -1], -0.5),  # no loss for −1 ≤ b ≤ 0
        ([0.0, -4.0], [1, -1], 2.0),  # no loss for 1 ≤ b ≤ 3
    ],
)
def test_best_intercept_is_the_middle_of_its_interval(loss, scores, y, middle):
    own = objective(Problem(loss, 0.1, "free"), np.ones((2, 1)), y)
    assert own.best_intercept(np.array(scores)) == pytest.approx(middle, abs=1e-12)


@pytest.mark.parametrize("shares", [(1, 1), (7, 3), (49, 10)])
def test_the_middle_survives_weights_that_cancel_up_to_rounding(shares):
    # Each class weighs 1 in all, as class_weight="balanced" has it: the slopes cancel for −1 ≤ b ≤ 1.
    y = np.repeat([1.0, -1.0], shares)
    own = objective(Problem(Hinge(), 0.1, "free"), np.ones((y.size, 1)), y, np.repeat(1.0 / np.array(shares), shares))
    assert own.best_intercept(np.zeros(y.size)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("guess", [0.0, 0.3, -50.0, 1e9, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("m", [50, 5000])  # fewer and more rows than a sample
def test_no_guess_leads_the_best_intercept_astray(guess, m):
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=m) + 2
    y, c = np.where(rng.random(m) < 0.3, 1.0, -1.0), rng.uniform(0.5, 2.0, size=m)
    own = objective(Problem(Hinge(), 0.1, "free"), np.zeros((m, 1)), y, c)
    values = [own.mean_loss(scores, b) for b in (*np.linspace(-12, 12, 2401), *(1.0 - scores))]
    assert own.mean_loss(scores, own.best_intercept(scores, guess)) <= min(values) + 1e-12


@pytest.mark.parametrize("c", [None, [1.0, 5.0, 0.0, 2.0, 0.5]])
@pytest.mark.parametrize("loss", [*LOSSES, EpsilonInsensitive(0.3), Huber(0.5), Pinball(0.2)], ids=repr)
def test_best_constant_is_the_best_for_w_zero(loss, c):
    y = np.array([1.0, -1.0, 1.0, -1.0, -1.0]) * (1.0 if loss.is_classification else [3.0, 1.0, 7.0, 2.0, 9.0])
    own = objective(Problem(loss, 0.1, "free"), np.zeros((5, 1)), y, c)
    found = own.value(np.zeros(1), own.best_constant())
    assert found <= min(own.value(np.zeros(1), b) for b in np.linspace(-10, 10, 4001)) + 1e-12


def test_best_intercept_of_a_lopsided_problem():
    # One −1 in 10⁶ rows, by weight: the logistic optimum lies at log of the odds.
    own = objective(Problem(Logistic(), 0.1, "free"), np.ones((2, 1)), [1, -1], [1e6, 1.0])
    assert own.best_intercept(np.zeros(2)) == pytest.approx(np.log(1e6), rel=1e-9)


@each_loss
@each_intercept
def test_weight_2_is_the_row_twice_and_0_is_no_row(loss, intercept):
    problem = Problem(loss, 0.05, intercept)
    times = np.random.default_rng(5).integers(0, 3, size=M)
    assert set(times) == {0, 1, 2}
    weighted = objective(problem, X, Y, times)
    repeated = objective(problem, np.repeat(X, times, axis=0), np.repeat(Y, times))
    w, b = np.array([1.0, -2.0, 0.5, 3.0]), intercept_of(problem, 0.3)
    alpha = Y * np.random.default_rng(6).random(M)
    assert weighted.value(w, b) == pytest.approx(repeated.value(w, b), rel=1e-13)
    ours, theirs = (own.subgradient(w, b) for own in (weighted, repeated))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-14)
    assert ours[1] == pytest.approx(theirs[1], rel=1e-12, abs=1e-14)
    assert weighted.lower_bound(alpha) == pytest.approx(repeated.lower_bound(np.repeat(alpha, times)), rel=1e-9)
    scores = X @ w
    assert weighted.best_intercept(scores) == pytest.approx(repeated.best_intercept(np.repeat(scores, times)), abs=1e-9)


@each_loss
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_the_ball_holds_the_optimum(loss, lam):
    from primalsvm import solve

    radius = Problem(loss, lam).on(DATA["plain"], Y).radius
    assert np.linalg.norm(solve(Problem(loss, lam), X, Y).w) <= radius


@pytest.mark.parametrize("lam", [0, -1.0, np.nan, np.inf])
def test_lam_must_be_positive(lam):
    with pytest.raises(ValueError, match="lam must be a positive number"):
        Problem(Hinge(), lam)


def test_unknown_intercept():
    with pytest.raises(ValueError, match="intercept='yes'"):
        Problem(Hinge(), 1.0, "yes")


@pytest.mark.parametrize(("y", "message"), [([0, 1], "labels -1 and \\+1"), ([1, 1], "one class only")])
def test_labels_are_checked(y, message):
    with pytest.raises(ValueError, match=message):
        check_both_signs(np.array(y, float), as_weights(None, 2))


def test_the_sampled_mean_row_leaves_out_rows_of_weight_zero(monkeypatch):
    monkeypatch.setattr(objective_file, "SAMPLED_ROWS", 4)
    rows = np.random.default_rng(0).normal(size=(128, 3))
    rows[1::2] = rows[::2]
    weight = np.arange(128.0) % 2  # every row that an even spacing of all rows would choose has none
    data = KernelMatrix(Gaussian(0.1), as_block(rows), as_points(rows), 0.0, as_weights(weight, 128), ALONE)
    kept = np.flatnonzero(weight)
    fewer = KernelMatrix(
        Gaussian(0.1), as_block(rows[kept]), as_points(rows[kept]), 0.0, as_weights(weight[kept], 64), ALONE
    )
    assert mean_row(data).spread == pytest.approx(mean_row(fewer).spread)
