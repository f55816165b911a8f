"""`LinearSVR`: linear support vector regression with a certificate."""

from typing import Any, Literal

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.features import LinearFeatures
from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.regression import Regressor
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


@fill_parameters
class LinearSVR(Regressor):
    """Linear support vector regression to a proven accuracy.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) until the relative duality gap is at most `tol`.

    Parameters
    ----------
    epsilon : float, default=0.0
        Errors up to ε cost nothing. For the Huber loss, the error δ from which the loss is linear.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball"} or a loss object
        The default is "epsilon_insensitive".
    quantile : float, default=0.5
        τ of the pinball loss: the share of targets below the prediction.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from primalsvm import LinearSVR
    >>> X, y = make_regression(200, 5, noise=10.0, random_state=0)
    >>> reg = LinearSVR(epsilon=1.0, C=10.0).fit(X, y)
    >>> reg.certificate_.relative_gap < 1e-9, reg.score(X, y) > 0.98
    (True, True)
    """

    _features = LinearFeatures()
    _coef_is_vector = True

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        C: float = 1.0,
        lam: float | None = None,
        loss: str | Loss = "epsilon_insensitive",
        quantile: float = 0.5,
        dual: bool | Literal["auto"] = "auto",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        certify: bool = True,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: Checkpoint | None = None,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())
