"""A loss, a solver, a data set and a feature map of one's own, from here alone: they fit, certify, save and load."""

from dataclasses import dataclass
from functools import reduce as fold
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

import primalsvm
from primalsvm import (
    SVC,
    Asset,
    Checkpoint,
    Hinge,
    LinearSVC,
    LinearSVR,
    Newton,
    Pegasos,
    Problem,
    SquaredHinge,
    Status,
)
from primalsvm.data import ALONE, Dataset, Dense, Weights
from primalsvm.data.dataset import add_results
from primalsvm.losses.margin import MarginLoss
from primalsvm.losses.registry import LOSSES
from primalsvm.maps.registry import MAPS
from primalsvm.objective import Evaluation
from primalsvm.persistence import ModelError
from primalsvm.solvers.protocol import SolverState, Traits
from primalsvm.solvers.registry import SOLVERS, STATES
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.stops import Stops
from tests.helpers import objective, solution_of
from tests.reference import noisy

X, Y = noisy(300, 4)


# ---- a loss ----------------------------------------------------------------------------------------------------------


class LeastSquares(NamedTuple):
    """ℓ = (1 − yp)²/2; −ℓ*(−α) = θ − θ²/2 with α = yθ, any θ."""

    @property
    def is_classification(self):
        return True

    @property
    def slope_bound(self):
        return np.inf

    @property
    def curvature(self):
        return 1.0

    def value(self, p, y):
        return 0.5 * (1.0 - y * p) * (1.0 - y * p)

    def slope(self, p, y):
        return p - y

    def conjugate(self, a, y):
        return a * y + 0.5 * a * a

    def conjugate_curvature(self, a, y):
        return 1.0

    def feasible(self, alpha, y):
        return alpha

    def dual_step(self, p, y, alpha, q):
        return (y - p + q * alpha) / (1.0 + q)


def ridge(lam):
    """min λ/2 ‖w‖² + mean (y − ⟨w, x⟩)²/2, by its linear system."""
    return np.linalg.solve(lam * np.eye(X.shape[1]) + X.T @ X / len(Y), X.T @ Y / len(Y))


@pytest.mark.parametrize("solver", ["auto", "dual_ascent", "newton"])
def test_a_loss(solver, tmp_path, monkeypatch):
    model = LinearSVC(lam=0.01, loss=LeastSquares(), solver=solver, fit_intercept=False).fit(X, Y)
    assert model.certificate_.relative_gap <= 1e-9
    np.testing.assert_allclose(model.coef_[0], ridge(0.01), rtol=1e-3, atol=1e-5)
    monkeypatch.setitem(LOSSES, "LeastSquares", LeastSquares)
    model.save(tmp_path / "model")
    again = primalsvm.load(tmp_path / "model")
    assert again.loss == LeastSquares() and np.array_equal(again.predict(X), model.predict(X))


class Scale(NamedTuple):
    """How often the hinge is taken."""

    scale: float = 20.0


class ScaledHinge(Scale, MarginLoss):
    """A multiple of the hinge: the hinge itself at a smaller λ."""

    limits: ClassVar = {"scale": (0.0, np.inf)}

    @property
    def slope_bound(self):
        return self.scale

    def value(self, p, y):
        return self.scale * max(0.0, 1.0 - y * p)

    def slope(self, p, y):
        return -self.scale * y if y * p < 1.0 else 0.0

    def conjugate(self, a, y):
        return a * y if -self.scale <= a * y <= 0.0 else np.inf

    def feasible(self, alpha, y):
        return y * min(max(y * alpha, 0.0), self.scale)

    def dual_step(self, p, y, alpha, q):
        return y * min(max(y * alpha + (1.0 - y * p) / max(q, 1e-12), 0.0), self.scale)


@pytest.mark.parametrize("solver", [Pegasos(projection=True), Asset()])
def test_the_ball_of_a_larger_loss_holds_the_optimum(solver):
    expected = solution_of(objective(Problem(Hinge(), 0.05), X, Y), Newton())
    scaled = objective(Problem(ScaledHinge(), 1.0), X, Y)
    assert np.linalg.norm(expected.w) > 1.0  # the ball of the hinge itself
    assert np.linalg.norm(expected.w) <= scaled.radius
    found = solution_of(scaled, solver, Stops(tol=1e-2))
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(20.0 * expected.certificate.primal, rel=1e-2)


@pytest.mark.parametrize("scale", [-1.0, 0.0, np.inf])
def test_a_loss_may_limit_its_parameters(scale):
    with pytest.raises(ValueError, match="scale must be positive and finite"):
        Problem(ScaledHinge(scale), 1.0)


# ---- a solver --------------------------------------------------------------------------------------------------------


@dataclass
class DescentState(SolverState):
    """w."""

    w: np.ndarray


@dataclass(frozen=True)
class Descent:
    """Gradient descent for smooth losses: w ← w − ∇P/L, L = λ + curvature · mean‖x‖²; α = −ℓ'."""

    name: ClassVar[str] = "descent"
    traits: ClassVar[Traits] = Traits("passes", intercepts=("none",))  # it never moves b

    def start(self, objective, run, previous=None):
        return DescentState(np.zeros(objective.data.shape[1]))

    def advance(self, objective, state):
        length = objective.lam + objective.loss.curvature * objective.data.squared_norms().mean()
        state.w = state.w - objective.subgradient(state.w, 0.0)[0] / length
        state.steps += 1
        state.epoch += 1.0
        state.worth_evaluating = state.steps % 10 == 0
        return state

    def evaluate(self, objective, state):
        scores = objective.data.scores(state.w)
        alpha = objective.data.map(np.negative, objective.slopes_at(scores, 0.0))
        return Evaluation(state.w, 0.0, objective.value_at(scores, state.w, 0.0), objective.lower_bound(alpha))

    def iterate(self, objective, state):
        return state.w, 0.0

    def observe(self, objective, state, evaluation):
        pass


def test_a_solver(tmp_path, monkeypatch):
    model = LinearSVC(lam=0.1, loss=SquaredHinge(), solver=Descent(), fit_intercept=False).fit(X, Y)
    exact = LinearSVC(lam=0.1, loss=SquaredHinge(), solver="newton", fit_intercept=False).fit(X, Y)
    assert model.status_ is Status.CONVERGED and set(model.history_["solver"]) == {"descent"}
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-3)
    monkeypatch.setitem(SOLVERS, "Descent", Descent)
    model.save(tmp_path / "model")
    assert primalsvm.load(tmp_path / "model").solver_ == Descent()


def test_a_solver_that_counts_no_operations_stops_after_its_epochs():
    model = LinearSVC(lam=1e-6, loss=SquaredHinge(), solver=Descent(), fit_intercept=False, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="stopped after 1000 epochs"):
        model.fit(X * [1.0, 1.0, 1.0, 1e-3], Y)  # a flat direction, in which gradients are short
    assert model.status_ is Status.MAX_ITER and model.n_iter_ == 1000


@pytest.mark.parametrize("penalize", [False, True])
def test_a_solver_refuses_intercepts_that_it_does_not_declare(penalize):
    kind = "penalized" if penalize else "free"
    with pytest.raises(ValueError, match=f"solver 'descent' is for problems with intercept='none', not '{kind}'"):
        LinearSVC(lam=0.1, loss=SquaredHinge(), solver=Descent(), penalize_intercept=penalize).fit(X, Y)
    stages = SolverSequence((Stage(Newton()), Stage(Descent())))
    assert stages.traits.intercepts == ("none",)


def test_a_solver_with_a_checkpoint(tmp_path, monkeypatch):
    options = {"lam": 0.1, "loss": SquaredHinge(), "solver": Descent(), "fit_intercept": False, "random_state": 0}
    checkpoint = Checkpoint(tmp_path / "run", every=0.0, resume=True)
    advice = "cannot be saved in a checkpoint: register its class in primalsvm.solvers.registry"
    with pytest.raises(ModelError, match=rf"solver = Descent\(\) {advice}\.SOLVERS"):
        LinearSVC(**options, checkpoint=checkpoint).fit(X, Y)
    monkeypatch.setitem(SOLVERS, "Descent", Descent)
    for every in (0.0, 60.0):  # whether a checkpoint is due or not
        with pytest.raises(ModelError, match=rf"(?s)DescentState\(.*{advice}\.STATES"):
            LinearSVC(**options, checkpoint=Checkpoint(tmp_path / "run", every=every)).fit(X, Y)
    monkeypatch.setitem(STATES, "DescentState", DescentState)
    with pytest.warns(ConvergenceWarning):
        LinearSVC(**options, checkpoint=checkpoint, max_iter=5).fit(X, Y)
    again = LinearSVC(**options, checkpoint=checkpoint).fit(X, Y)
    assert np.array_equal(again.coef_, LinearSVC(**options).fit(X, Y).coef_)


# ---- a data set ------------------------------------------------------------------------------------------------------


class Pieces(Dataset):
    """A list of arrays; a handle is a list with a piece for each. It has `map` and `reduce`, and nothing else."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.blocks = [Dense(np.ascontiguousarray(array)) for array in arrays]
        m, d = sum(map(len, arrays)), arrays[0].shape[1]
        self.shape, self.entries, self.nbytes, self.dtype, self.sparse = (
            (m, d),
            m * d,
            8 * m * d,
            np.dtype(float),
            False,
        )
        self.weights, self.total_weight, self.threads = [Weights(np.ones(1), 0) for _ in arrays], float(m), ALONE

    def map(self, function, *handles, rows=False, columns=0):
        out = [np.zeros((len(array), columns) if columns else len(array)) for array in self.arrays]
        for k, block in enumerate(self.blocks):
            function(*([block] if rows else []), *(handle[k] for handle in handles), out[k])
        return out

    def reduce(self, function, *handles, rows=False, merge=None):
        results = [
            function(*([block] if rows else []), *(handle[k] for handle in handles))
            for k, block in enumerate(self.blocks)
        ]
        return fold(merge or add_results, results)


CUTS = [0, 3, 140, 300]


def cut(values):
    """An array in pieces."""
    return [np.ascontiguousarray(values[a:b]) for a, b in pairwise(CUTS)]


@pytest.mark.parametrize(("solver", "intercept"), [(Newton(), "none"), (Newton(), "free"), (Descent(), "none")])
def test_a_data_set(solver, intercept):
    problem = Problem(SquaredHinge(), 0.1, intercept)
    expected = solution_of(objective(problem, X, Y), Newton())
    found = solution_of(problem.on(Pieces(cut(X)), cut(Y)), solver)
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-3)
    np.testing.assert_allclose(found.w, expected.w, rtol=0.05, atol=1e-2)


def test_newton_on_a_data_set_takes_the_steps_that_it_takes_in_memory():
    problem = Problem(Hinge(), 0.01, "free")
    expected = solution_of(objective(problem, X, Y), Newton())
    found = solution_of(problem.on(Pieces(cut(X)), cut(Y)), Newton())
    assert found.certificate.relative_gap <= 1e-10 and found.n_steps == expected.n_steps
    np.testing.assert_allclose(found.w, expected.w, rtol=1e-6)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), LeastSquares()], ids=repr)
def test_certificates_on_a_data_set(loss):
    rng = np.random.default_rng(0)
    problem, w, alpha = Problem(loss, 0.01, "free"), rng.normal(size=4), Y * rng.random(300)
    here, elsewhere = objective(problem, X, Y), problem.on(Pieces(cut(X)), cut(Y))
    for one, two in [
        (here.evaluate_primal(w, np.nan)[:2], elsewhere.evaluate_primal(w, np.nan)[:2]),
        (here.lower_bound(alpha), elsewhere.lower_bound(cut(alpha))),
        (here.best_constant(), elsewhere.best_constant()),
        (here.held_out_error(w, 0.1), elsewhere.held_out_error(w, 0.1)),
    ]:
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


# ---- a feature map ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Products:
    """φ(x) = (x, all xᵢxⱼ)."""

    n_features: int

    @property
    def n_components(self):
        return self.n_features + self.n_features**2

    def block(self, rows):
        x = rows.matrix()
        return np.hstack([x, (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)])


class ProductFeatures(BaseEstimator):
    """What `SVC` asks for a map."""

    def build(self, X, rows, precision, seed, weight=None):
        return Products(X.shape[1]), None


@pytest.mark.parametrize("memory", [None, 1e4])
def test_a_map(memory, tmp_path, monkeypatch):
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    model = SVC(C=100.0, approximation=ProductFeatures(), memory=memory, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3 and model.score(X, y) > 0.97
    monkeypatch.setitem(MAPS, "Products", Products)
    monkeypatch.setitem(MAPS, "ProductFeatures", ProductFeatures)
    model.save(tmp_path / "model")
    assert np.array_equal(primalsvm.load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("options", "registry"),
    [
        ({"loss": LeastSquares()}, "losses.registry.LOSSES"),
        ({"loss": SquaredHinge(), "solver": Descent()}, "solvers.registry.SOLVERS"),
    ],
    ids=["loss", "solver"],
)
def test_saving_what_is_not_registered_says_what_to_do(options, registry, tmp_path):
    model = LinearSVC(lam=0.1, fit_intercept=False, **options).fit(X, Y)
    with pytest.raises(ModelError, match=rf"cannot be saved in a model file: register .* primalsvm\.{registry}"):
        model.save(tmp_path / "model")


def test_saving_a_map_that_is_not_registered_says_what_to_do(tmp_path):
    model = SVC(C=1.0, approximation=ProductFeatures(), random_state=0).fit(X, Y)
    with pytest.raises(ModelError, match=r"ProductFeatures\(\) cannot .* primalsvm\.maps\.registry\.MAPS"):
        model.save(tmp_path / "model")


def test_registered_losses_and_solvers_have_names(monkeypatch):
    monkeypatch.setitem(LOSSES, "LeastSquares", LeastSquares)
    monkeypatch.setitem(SOLVERS, "Descent", Descent)
    model = LinearSVC(lam=0.1, loss="least_squares", solver="descent", fit_intercept=False).fit(X, Y)
    assert model.solver_ == Descent()
    np.testing.assert_allclose(model.coef_[0], ridge(0.1), rtol=0.05, atol=1e-2)


class HalfSquares(NamedTuple):
    """A loss of numbers that does not say how it depends on their unit."""

    is_classification = False
    dual_step = None


def test_regressors_say_what_a_loss_has_not():
    with pytest.raises(ValueError, match=r"HalfSquares\(\) has no degree and no scaled, which regressors need"):
        LinearSVR(loss=HalfSquares()).fit(X, Y)
