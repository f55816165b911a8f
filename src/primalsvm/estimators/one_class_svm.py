"""`OneClassSVM`: novelty detection with a kernel by low-dimensional features, with a certificate."""

from typing import Any

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.novelty import Detector
from primalsvm.estimators.parameters import store_parameters
from primalsvm.solvers.protocol import Solver


class OneClassSVM(Detector):
    """One-class support vector machine through features that approximate the kernel.

    Maps rows to d features φ(x) with ⟨φ(s), φ(t)⟩ ≈ k(s, t) and minimises the objective of Schölkopf et al. (2001)
    times ν, P(w, ρ) = ν/2 ‖w‖² − νρ + (1/Σc) Σ cᵢ max(0, ρ − ⟨w, φ(xᵢ)⟩), until the relative duality gap is at most
    `tol`.

    Parameters
    ----------
    nu : float, default=0.5
        ν in (0, 1]: the share of training rows that are outliers, at most, and that are support vectors, at least. The
        share of outliers is ν up to ties and rounding.
    kernel : {"rbf", "laplacian", "chi2", "poly", "linear", "precomputed"} or function, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
    approximation : {"nystroem", "fourier", "exact"} or a Nystroem or FourierFeatures object, default="nystroem"
        As in `SVC`.
    n_components : int or None, default=None
        Landmarks or Fourier features; None: 512, or the number of rows if there are fewer. Rows that are far from all
        landmarks have scores near 0, as outliers have.
    solver : {"auto", "newton", "dual_ascent", "interior_point", "asset", "pegasos"} or a solver object, default="auto"
    tol : float, default=1e-3
        Relative duality gap of the mapped problem to reach, at least. Small problems are solved to 1e-10.
    max_iter : int or None, default=None
        Epochs at most. None stops after 1,000 epochs or 1e11 operations (a minute or two), whichever comes last.
    max_seconds : float or None, default=None
        Seconds of solving at most.
    certify : bool, default=True
        Compute the certificate.
    warm_start : bool, default=False
        Go on from the previous fit where the data have the same shape.
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
    feature_map_, coef_, intercept_, dual_coef_, landmarks_, support_
        As in `SVC`.
    offset_ : ndarray of shape (1,)
        ρ = −`intercept_`.
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate is that of the mapped problem, about P.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> detector = OneClassSVM(nu=0.05, gamma=0.2, random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [5.0, 5.0]]), int(np.sum(detector.predict(X) == -1))
    (array([ 1, -1]), 25)
    """

    _features = KernelFeatures()

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "nystroem",
        n_components: int | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        certify: bool = True,
        warm_start: bool = False,
        checkpoint: Checkpoint | None = None,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())
