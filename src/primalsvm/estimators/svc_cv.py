"""`SVCCV`: a kernel classifier that chooses its C and its γ by cross-validation."""

from typing import Any, Literal

from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.selection import SelectingClassifier
from primalsvm.estimators.svc import SVC
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class SVCCV(SelectingClassifier, SVC):
    """`SVC` with C and γ chosen by cross-validation.

    For each γ the features are computed once and shared by all folds; each fold is a path over the values of C. The
    final model is an `SVC` fitted to all rows with the best C and γ; if several are equally good, with the smallest C,
    then the first γ.

    In the folds, landmarks are drawn from all rows without using the labels, so they depend on the features of the
    held-out rows but not on their classes. In the final fit they may be drawn near the margin, as in `SVC`.

    Parameters
    ----------
    Cs : int or array of floats, default=10
        Values of C, or their number, as in `LinearSVCCV`.
    gammas : int or array of floats, default=3
        Values of γ. An integer is their number: they are evenly spaced in log γ from a tenth of "scale" (see `SVC`) to
        ten times "scale"; a single one is "scale" itself.
    cv, scoring, refit
        As in `LinearSVCCV`.
    kernel, degree, coef0, approximation, n_components, loss, solver, tol, max_iter, fit_intercept, penalize_intercept,
    class_weight, memory, random_state
        As in `SVC`; the kernel must have a γ, and the approximation must not be "exact".
    n_jobs : int or None, default=None
        Number of threads, first for the folds in parallel, then for the final fit.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    C_, gamma_, lam_ : float
        The best C and γ, and λ = 1/(C Σc) for all rows.
    Cs_, gammas_ : ndarray
    scores_ : ndarray of shape (n_gammas, n_folds, n_Cs)
    best_score_ : float
    coef_, feature_map_, classes_, certificate_, …
        As in `SVC`. `save` writes an `SVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from primalsvm import SVCCV
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], n_components=50, cv=3, random_state=0).fit(X, y)
    >>> clf.gamma_, clf.scores_.shape, clf.score(X, y) > 0.95
    (1.0, (2, 3, 3), True)
    """

    _base_class = SVC

    def __init__(
        self,
        *,
        Cs: Any = 10,
        gammas: Any = 3,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "nystroem",
        n_components: int | None = None,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())
