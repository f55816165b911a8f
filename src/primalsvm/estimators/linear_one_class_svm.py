"""`LinearOneClassSVM`: novelty detection by a hyperplane, with a certificate."""

from typing import Any

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.features import LinearFeatures
from primalsvm.estimators.novelty import Detector
from primalsvm.estimators.parameters import store_parameters
from primalsvm.solvers.protocol import Solver


class LinearOneClassSVM(Detector):
    """Linear one-class support vector machine to a proven accuracy.

    Finds the hyperplane that parts most rows from the origin, as far from it as may be: minimises the objective of
    Schölkopf et al. (2001) times ν, P(w, ρ) = ν/2 ‖w‖² − νρ + (1/Σc) Σ cᵢ max(0, ρ − ⟨w, xᵢ⟩), until the relative
    duality gap is at most `tol`.

    P* is not positive. It is 0, with w = 0, where rows surround the origin, as centred features do: a fit then warns.

    Parameters
    ----------
    nu : float, default=0.5
        ν in (0, 1]: the share of training rows that are outliers, at most, and that are support vectors, at least. The
        share of outliers is ν up to ties and rounding.
    solver : {"auto", "newton", "dual_ascent", "interior_point", "asset", "pegasos"} or a solver object, default="auto"
    tol : float, default=1e-3
        Relative duality gap to reach, at least. Small problems are solved to 1e-10.
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
        Bytes that the rows of a source (`primalsvm.open`) may take; None is half of what is available.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one, -1 all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        w. LIBSVM's is Σc times ν as long.
    intercept_ : ndarray of shape (1,)
    offset_ : ndarray of shape (1,)
        ρ = −`intercept_`.
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate is about P.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import LinearOneClassSVM
    >>> X = 5.0 + np.random.default_rng(0).normal(size=(200, 3))
    >>> detector = LinearOneClassSVM(nu=0.05).fit(X)
    >>> detector.certificate_.relative_gap < 1e-9, int(np.sum(detector.predict(X) == -1))
    (True, 10)
    """

    _features = LinearFeatures()

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
