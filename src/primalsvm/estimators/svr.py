"""`SVR`: kernel support vector regression, exact or by low-dimensional features, with a certificate."""

from typing import Any

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.kernel_machine import KernelMachine
from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.regression import Regressor
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


@fill_parameters
class SVR(KernelMachine, Regressor):
    """Kernel support vector regression, in the place of scikit-learn's.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, φ(xᵢ)⟩ + b) until the relative duality gap is at most `tol`,
    where ⟨φ(s), φ(t)⟩ is k(s, t) in an exact machine, and near it in an approximate one.

    Parameters
    ----------
    epsilon : float, default=0.1
        Errors up to ε cost nothing. For the Huber loss, the error δ from which the loss is linear.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball"} or a loss object
        The default is "epsilon_insensitive".
    quantile : float, default=0.5
        τ of the pinball loss: the share of targets below the prediction.

    Attributes
    ----------
    approximation_, intercept_, support_, support_vectors_, n_support_, dual_coef_, coef_, feature_map_, feature_coef_,
    landmarks_, landmark_coef_, gamma_, fit_status_, shape_fit_, sparse_fit_
        As in `SVC`, with one problem and all rows in one class.
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate of an approximate machine is that of the mapped problem.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import SVR
    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> reg = SVR(gamma=1.0, C=10.0, epsilon=0.05, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(reg.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    """

    _features = KernelFeatures()

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        C: float = 1.0,
        lam: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "auto",
        n_components: int | None = None,
        loss: str | Loss = "epsilon_insensitive",
        quantile: float = 0.5,
        solver: str | Solver = "auto",
        shrinking: bool = True,
        cache_size: float | None = None,
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
