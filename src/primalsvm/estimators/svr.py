"""`SVR`: kernel support vector regression by low-dimensional features, with a certificate."""

from typing import Any

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.regression import Regressor
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class SVR(Regressor):
    """Kernel support vector regression through features that approximate the kernel.

    Maps rows to d features φ(x) with ⟨φ(s), φ(t)⟩ ≈ k(s, t) and minimises
    P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, φ(xᵢ)⟩ + b) until the relative duality gap is at most `tol`.

    Parameters
    ----------
    epsilon : float, default=0.1
        Errors up to ε are free; of the Huber loss, the error δ from which it is linear.
    C : float, default=1.0
        As in scikit-learn: λ = 1/(C Σc).
    lam : float or None, default=None
        λ itself; overrides `C`. Needed by `partial_fit`.
    kernel : {"rbf", "laplacian", "chi2", "poly", "linear", "precomputed"} or function, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
    approximation : {"nystroem", "fourier"} or a Nystroem or FourierFeatures object, default="nystroem"
    n_components : int or None, default=None
        Landmarks or Fourier features; None: 512, or the number of rows if there are fewer.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball"} or a loss object
        The default is "epsilon_insensitive".
    quantile : float, default=0.5
        τ of the pinball loss: the share of targets that lie below the prediction.
    solver : {"auto", "newton", "dual_ascent", "interior_point", "asset", "pegasos"} or a solver object, default="auto"
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
        Bytes that the features may take; None is half of what is available.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one (and BLAS's own), -1 all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    feature_map_, coef_, intercept_, dual_coef_, landmarks_
        As in `SVC`.
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate is that of the mapped problem.

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
        approximation: Any = "nystroem",
        n_components: int | None = None,
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
