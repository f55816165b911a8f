"""`OneClassSVM`: novelty detection with a kernel, exact or by low-dimensional features, with a certificate."""

from typing import Any

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.kernel_machine import KernelMachine
from primalsvm.estimators.novelty import Detector, Novelty
from primalsvm.estimators.parameters import store_parameters
from primalsvm.solvers.protocol import Solver


@fill_parameters
class OneClassSVM(KernelMachine, Detector):
    """One-class support vector machine, in the place of scikit-learn's.

    Minimises the objective of Schölkopf et al. (2001) times ν,
    P(w, ρ) = ν/2 ‖w‖² − νρ + (1/Σc) Σ cᵢ max(0, ρ − ⟨w, φ(xᵢ)⟩), until the relative duality gap is at most `tol`, where
    ⟨φ(s), φ(t)⟩ is k(s, t) in an exact machine, and near it in an approximate one.

    Scores, coefficients and `offset_` are those of scikit-learn, ν Σc times as large as w and ρ here; after
    `partial_fit`, which does not know Σc, they are those of w and ρ.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of landmarks or Fourier features. None is 512, or the number of rows if there are fewer. Rows far from
        all landmarks have scores near 0, as outliers do.

    Attributes
    ----------
    approximation_, intercept_, support_, support_vectors_, n_support_, dual_coef_, coef_, feature_map_, feature_coef_,
    landmarks_, landmark_coef_, gamma_, fit_status_, shape_fit_, sparse_fit_
        As in `SVC`, with one problem and all rows in one class.
    offset_ : ndarray of shape (1,)
        ν Σc ρ = −`intercept_`.
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate of an approximate machine is that of the mapped problem.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> detector = OneClassSVM(nu=0.05, gamma=0.2, random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [5.0, 5.0]]), int(np.sum(detector.predict(X) == -1))
    (array([ 1, -1]), 25)
    """

    _task = Novelty(summed=True)
    _features = KernelFeatures()

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "auto",
        n_components: int | None = None,
        solver: str | Solver = "auto",
        shrinking: bool = True,
        cache_size: float | None = None,
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
