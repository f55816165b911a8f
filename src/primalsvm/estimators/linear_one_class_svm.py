"""`LinearOneClassSVM`: novelty detection by a hyperplane, with a certificate."""

from typing import Any

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.features import LinearFeatures
from primalsvm.estimators.novelty import Detector
from primalsvm.estimators.parameters import store_parameters
from primalsvm.solvers.protocol import Solver


@fill_parameters
class LinearOneClassSVM(Detector):
    """Linear one-class support vector machine to a proven accuracy.

    Finds the hyperplane that separates most rows from the origin with the largest margin: minimises the objective of
    Schölkopf et al. (2001) times ν, P(w, ρ) = ν/2 ‖w‖² − νρ + (1/Σc) Σ cᵢ max(0, ρ − ⟨w, xᵢ⟩), until the relative
    duality gap is at most `tol`.

    P* ≤ 0, and P* = 0 with w = 0 if the rows surround the origin, as those of centred features do; `fit` then warns.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        w, which is LIBSVM's divided by ν Σc.
    intercept_ : ndarray of shape (1,)
    offset_ : ndarray of shape (1,)
        ρ = −`intercept_`.
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`.

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
