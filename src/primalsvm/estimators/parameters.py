"""The parameters of estimators: how they are stored, checked at the beginning of a fit, and translated."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from primalsvm.checkpoints import Checkpoint
from primalsvm.memory import available
from primalsvm.objective import Intercept
from primalsvm.options import check_choice, check_number
from primalsvm.solvers.stops import Stops

NONE = type(None)
KINDS: dict[str, tuple[type, ...]] = {
    "C": (Real,),
    "lam": (Real, NONE),
    "nu": (Real,),
    "epsilon": (Real,),
    "quantile": (Real,),
    "tol": (Real,),
    "max_iter": (Integral, NONE),
    "max_seconds": (Real, NONE),
    "n_iter_no_change": (Integral,),
    "validation_fraction": (Real,),
    "n_jobs": (Integral, NONE),
    "memory": (Real, NONE),
    "cache_size": (Real, NONE),
    "intercept_scaling": (Real,),
}
MEGABYTE = 2.0**20
UNLIMITED = -1  # the value of max_iter that means no limit in scikit-learn
SWITCHES = (
    "fit_intercept", "penalize_intercept", "certify", "warm_start", "early_stopping", "shrinking", "break_ties",
)  # fmt: skip


def store_parameters(estimator: Any, given: dict[str, Any]) -> None:
    """Store the arguments of `__init__` under their names, unchanged, as scikit-learn requires."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def check_parameters(estimator: Any) -> None:
    """Raise a TypeError or a ValueError that names the first invalid parameter."""
    given = vars(estimator)
    for name, kinds in KINDS.items():
        if name in given and (isinstance(given[name], bool) or not isinstance(given[name], kinds)):
            kind = "an integer" if Integral in kinds else "a number"
            raise TypeError(f"{name} must be {kind}{' or None' if NONE in kinds else ''}, got {given[name]!r}")
    for name in SWITCHES:
        if not isinstance(given.get(name, False), bool | np.bool_):
            raise TypeError(f"{name} must be True or False, got {given[name]!r}")
    checkpoint = given.get("checkpoint")
    if not isinstance(checkpoint, Checkpoint | None):
        raise TypeError(f"checkpoint must be a Checkpoint object or None, got {checkpoint!r}")
    if checkpoint is not None and not isinstance(given["random_state"], Integral):
        raise ValueError(f"checkpoint requires an integer random_state, got {given['random_state']!r}")
    if given.get("lam") is None and not 0 < given.get("C", 1.0) < np.inf:
        raise ValueError(f"C must be positive and finite, got {given['C']!r}")
    if given.get("n_iter_no_change", 1) < 1:
        raise ValueError(f"n_iter_no_change must be at least 1, got {given['n_iter_no_change']!r}")
    if given.get("early_stopping") and not 0 < given["validation_fraction"] < 1:
        raise ValueError(f"validation_fraction must lie between 0 and 1, got {given['validation_fraction']!r}")
    check_number("cache_size", given.get("cache_size"), 0.0, open_low=True, none=True)
    if "decision_function_shape" in given:
        check_choice("decision_function_shape", given["decision_function_shape"], ("ovr", "ovo"))
    check_linear(given)
    estimator._task.check_parameters(estimator)
    estimator._features.check_parameters(estimator)


def check_linear(given: dict[str, Any]) -> None:
    """Raise an error for those parameters of scikit-learn's linear estimators that have no meaning here."""
    if given.get("penalty", "l2") != "l2":
        raise ValueError(
            f"penalty={given['penalty']!r}: the problem has the penalty 'l2' only, and 'l1' is another one"
        )
    if given.get("multi_class", "ovr") != "ovr":
        raise ValueError(
            f"multi_class={given['multi_class']!r}: several classes are solved one against the rest, 'ovr'; "
            "'crammer_singer' is another problem"
        )
    if not (isinstance(given.get("dual", True), bool | np.bool_) or given["dual"] == "auto"):
        raise ValueError(f"dual must be True, False or 'auto', got {given['dual']!r}")
    scaling = given.get("intercept_scaling", 1.0)
    check_number("intercept_scaling", scaling, 0.0, open_low=True)
    if scaling != 1.0 and given["fit_intercept"] and given["penalize_intercept"]:
        raise ValueError(
            f"intercept_scaling={scaling!r}: with penalize_intercept=True the constant feature is 1; a free intercept, "
            "the default, is what a large intercept_scaling approaches"
        )


def lam_of(estimator: Any, total_weight: float) -> float:
    """λ: as given, or 1/(C Σc)."""
    return float(estimator.lam) if estimator.lam is not None else 1.0 / (estimator.C * total_weight)


def intercept_of(estimator: Any) -> Intercept:
    """Which intercept the problem has."""
    if not estimator.fit_intercept:
        return "none"
    return "penalized" if estimator.penalize_intercept else "free"


def stops_of(estimator: Any) -> Stops:
    """The stopping criteria."""
    patience = getattr(estimator, "n_iter_no_change", Stops.patience)
    max_iter = None if estimator.max_iter == UNLIMITED else estimator.max_iter
    return Stops(estimator.tol, max_iter, estimator.max_seconds, estimator.certify, patience)


def memory_budget(estimator: Any) -> float:
    """The maximum number of bytes for rows or features."""
    if estimator.memory is None:
        return 0.5 * available()
    check_number("memory", estimator.memory, 0.0)
    return float(estimator.memory)


def cache_bytes(estimator: Any) -> float | None:
    """The number of bytes for kernel columns that `cache_size`, in megabytes, means; None: the solver's own limit."""
    return None if estimator.cache_size is None else MEGABYTE * float(estimator.cache_size)


def draw_seed(random_state: Any) -> int:
    """A seed, as scikit-learn draws it."""
    return int(check_random_state(random_state).randint(2**31 - 1))
