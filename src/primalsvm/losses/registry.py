"""The losses, by the names that estimators know. A new loss is a class in a file of this package, and a line here."""

from typing import Any

from primalsvm.losses.margin import Hinge, Logistic, SmoothedHinge, SquaredHinge
from primalsvm.losses.novelty import OneSided
from primalsvm.losses.regression import EpsilonInsensitive, Huber, Pinball, SquaredEpsilonInsensitive

MARGIN_LOSSES: dict[str, Any] = {  # of signs
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "smoothed_hinge": SmoothedHinge,
    "logistic": Logistic,
}
REGRESSION_LOSSES: dict[str, Any] = {  # of numbers
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "huber": Huber,
    "pinball": Pinball,
}
LOSSES: dict[str, Any] = {  # by the names of their classes, for files
    kind.__name__: kind for kind in (*MARGIN_LOSSES.values(), *REGRESSION_LOSSES.values(), OneSided)
}


def by_name(loss: Any) -> Any:
    """The loss of signs with a name, or the loss object itself.

    Examples
    --------
    >>> by_name("hinge")
    Hinge()
    """
    if not isinstance(loss, str):
        if isinstance(loss, type) or not hasattr(loss, "dual_step"):
            raise TypeError(f"loss must be a name or a loss object such as Hinge(), got {loss!r}")
        return loss
    if loss not in MARGIN_LOSSES:
        raise ValueError(f"loss={loss!r} is not known; choose one of {sorted(MARGIN_LOSSES)} or give a loss object")
    return MARGIN_LOSSES[loss]()


def regression_loss(name: str, epsilon: float, quantile: float) -> Any:
    """The loss of numbers with a name, given the parameters that regressors have.

    Examples
    --------
    >>> regression_loss("huber", epsilon=1.5, quantile=0.5)
    Huber(delta=1.5)
    """
    given = {"epsilon": epsilon, "delta": epsilon, "tau": quantile}
    kind = REGRESSION_LOSSES[name]
    return kind(*(given[field] for field in kind._fields))
