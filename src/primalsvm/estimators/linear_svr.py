"""`LinearSVR`: linear support vector regression with a certificate."""

from typing import Any

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.features import LinearFeatures
from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.regression import Regressor
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class LinearSVR(Regressor):
    """Linear support vector regression to a proven accuracy.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) until the relative duality gap is at most `tol`.

    Parameters
    ----------
    epsilon : float, default=0.0
        Errors up to ε are free; of the Huber loss, the error δ from which it is linear.
    C : float, default=1.0
        As in scikit-learn: λ = 1/(C Σc).
    lam : float or None, default=None
        λ itself; overrides `C`. Needed by `partial_fit`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball"} or a loss object
        The default is "epsilon_insensitive".
    quantile : float, default=0.5
        τ of the pinball loss: the share of targets that lie below the prediction.
    solver : {"auto", "dual_ascent", "newton", "interior_point", "pegasos", "asset"} or a solver object, default="auto"
    tol : float, default=1e-3
        Relative duality gap to reach, at least. Small problems are solved to 1e-10.
    max_iter : int or None, default=None
        Epochs at most. None stops after 1,000 epochs or 1e11 operations (a minute or two), whichever comes last.
    max_seconds : float or None, default=None
        Seconds of solving at most.
    fit_intercept : bool, default=True
    penalize_intercept : bool, default=False
        Regularise the intercept with the weights.
    certify : bool, default=True
        Compute the certificate.
    warm_start : bool, default=False
        Go on from the previous fit where the data have the same shape.
    early_stopping : bool, default=False
        Hold out a share of the rows and keep the point with the lowest mean loss there.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=5
    checkpoint : Checkpoint or None, default=None
        Where to keep the state of the fit, to go on from there after a crash (`primalsvm.Checkpoint`).
    memory : float or None, default=None
        Bytes that the rows of a source (`primalsvm.open`) may take; None is half of what is available.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one, -1 all cores.
    verbose : int, default=0
        1 shows a progress bar.

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
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
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
