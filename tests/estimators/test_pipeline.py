"""What a fit leaves behind, where its warnings point, and when a warm start does not fit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from primalsvm import SVC, LinearOneClassSVM, LinearRanker, LinearSVC, LinearSVCCV, LinearSVR, Nystroem
from primalsvm.estimators.registry import ESTIMATORS, SELECTING
from tests.reference import noisy

X, Y = noisy(200, 4)
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])


@pytest.mark.parametrize("kind", [*ESTIMATORS.values(), *SELECTING.values()], ids=lambda kind: kind.__name__)
def test_an_estimator_has_no_private_methods_and_little_hidden_state(kind):
    own = [one for one in kind.__mro__ if one.__module__.startswith("primalsvm")]
    names = {
        name for one in own for name, value in vars(one).items() if callable(value) and not isinstance(value, type)
    }
    assert not {name for name in names if name.startswith("_") and not name.startswith("__")}
    model = kind(**{name: 2 for name in ("Cs", "gammas", "cv") if name in kind().get_params()})
    model.fit(X + 3.0, Y)
    hidden = {name for name in vars(model) if name not in model.get_params() and not name.endswith("_")}
    assert hidden == {"_previous"}
    if hasattr(model, "partial_fit"):
        model.set_params(**({"lam": 0.1} if "lam" in model.get_params() else {})).partial_fit(X + 3.0, Y)
        hidden = {name for name in vars(model) if name not in model.get_params() and not name.endswith("_")}
        assert hidden == {"_previous", "_stream"} and model._previous is None


def test_a_fit_replaces_all_fitted_attributes():
    model = LinearSVC(probability=True, random_state=0).fit(X, Y)
    model.left_ = "from an earlier version"
    model.set_params(probability=False).fit(X, Y)
    fresh = clone(model).fit(X, Y)
    assert set(vars(model)) == set(vars(fresh)) and not hasattr(model, "calibration_")


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(solver="dual_ascent", max_iter=1),
        LinearSVCCV(Cs=[1e4], cv=2, solver="dual_ascent", max_iter=1),
        LinearRanker(solver="cutting_planes", max_iter=1),
        LinearOneClassSVM(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_warnings_point_at_the_caller(model):
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X - X.mean(axis=0), Y)
    assert {one.filename for one in caught} == {__file__}


def steps(model, *fits):
    """The steps of the last of several fits to (X, y), each with other parameters."""
    for X_, y, parameters in fits:
        model.set_params(**parameters).fit(X_, y)
    return model.n_steps_


@pytest.mark.parametrize(
    ("model", "first", "second", "fits"),
    [
        (LinearSVC(lam=0.01), (X, Y, {}), (X, Y, {"lam": 0.011}), True),
        (LinearSVC(lam=0.01), (X, Y, {}), (X, CLASSES, {}), False),  # another number of problems
        (LinearSVC(lam=0.01), (X, CLASSES, {}), (X, CLASSES, {"lam": 0.011}), True),
        (LinearSVR(lam=0.01), (X, X[:, 0] + Y, {}), (X, 1.1 * (X[:, 0] + Y), {}), True),
        (LinearSVR(lam=0.01), (X, X[:, 0] + Y, {}), (X, 2.0 * (X[:, 0] + Y), {}), False),  # other units
        (LinearSVR(lam=0.01), (X, X[:, 0] + Y, {}), (X, X[:, 0] + Y + 5.0, {}), False),
        (SVC(lam=0.01, gamma=0.5, n_components=30), (X, Y, {}), (X, Y, {"lam": 0.011}), True),
        (SVC(lam=0.01, gamma=0.5, n_components=30), (X, Y, {}), (X, Y, {"gamma": 0.6}), False),  # another map
        (SVC(lam=0.01, approximation=Nystroem(landmarks=X[:20])), (X, Y, {}),
         (X, Y, {"approximation": Nystroem(landmarks=X[:21])}), False),
    ],
)  # fmt: skip
def test_a_warm_start_goes_on_only_where_it_fits(model, first, second, fits):
    model = clone(model).set_params(solver="newton", random_state=0)
    cold = steps(clone(model), (first[0], first[1], second[2]) if fits else second, second)
    warm = steps(clone(model).set_params(warm_start=True), first, second)
    assert warm < cold if fits else warm == cold


def test_without_warm_start_no_states_are_kept():
    model = LinearSVC(solver="dual_ascent").fit(X, Y)
    assert model._previous.states is None
    assert model.set_params(warm_start=True).fit(X, Y)._previous.states is not None
