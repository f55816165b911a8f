"""The losses. A new loss is a class in a file of this package, and a line here: for files, and for its name.

Its name, for estimators, is that of its class in lower case: SquaredHinge is "squared_hinge". A loss that has a name
has defaults for all its numbers.
"""

import re
from typing import Any

from primalsvm.losses.margin import Hinge, Logistic, SmoothedHinge, SquaredHinge
from primalsvm.losses.novelty import OneSided
from primalsvm.losses.regression import EpsilonInsensitive, Huber, Pinball, SquaredEpsilonInsensitive

LOSSES: dict[str, Any] = {  # by the names of their classes
    kind.__name__: kind
    for kind in (
        *(Hinge, SquaredHinge, SmoothedHinge, Logistic),  # margin losses
        *(EpsilonInsensitive, SquaredEpsilonInsensitive, Huber, Pinball),  # regression losses
        OneSided,  # of the one-class problem
    )
}


def named_losses(is_classification: bool) -> dict[str, Any]:
    """The margin losses, or the regression losses, by the names that estimators know.

    Examples
    --------
    >>> named_losses(is_classification=True)["squared_hinge"]
    <class 'primalsvm.losses.margin.SquaredHinge'>
    """
    kinds = [kind for kind in LOSSES.values() if kind is not OneSided and kind().is_classification == is_classification]
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in kinds}


def by_name(loss: Any) -> Any:
    """The margin loss with a name, or the loss object itself.

    Examples
    --------
    >>> by_name("hinge")
    Hinge()
    """
    if not isinstance(loss, str):
        if isinstance(loss, type) or not hasattr(loss, "dual_step"):
            raise TypeError(f"loss must be a name or a loss object such as Hinge(), got {loss!r}")
        return loss
    known = named_losses(is_classification=True)
    if loss not in known:
        raise ValueError(f"loss={loss!r} is not known; choose one of {sorted(known)} or give a loss object")
    return known[loss]()


def regression_loss(name: str, epsilon: float, quantile: float) -> Any:
    """The regression loss with a name, given the parameters that regressors have.

    Examples
    --------
    >>> regression_loss("huber", epsilon=1.5, quantile=0.5)
    Huber(delta=1.5)
    """
    given = {"epsilon": epsilon, "delta": epsilon, "tau": quantile}
    kind = named_losses(is_classification=False)[name]
    return kind(**{field: given[field] for field in kind._fields if field in given})
