"""`SVCCV`: a kernel classifier that chooses its C and its γ by cross-validation."""

from typing import Any, Literal

from primalsvm.estimators.parameters import store_parameters
from primalsvm.estimators.selection import SelectingClassifier
from primalsvm.estimators.svc import SVC
from primalsvm.losses import Loss
from primalsvm.solvers.protocol import Solver


class SVCCV(SelectingClassifier, SVC):
    """`SVC` with C and γ chosen by cross-validation.

    For each γ the features are computed once and shared by all folds; each fold is a path over the C's. Afterwards it
    is an `SVC` fitted to all rows with the best C and γ; of equal ones, the smallest C, then the first γ.

    Landmarks are drawn from all rows, without a look at the labels: what folds know of the rows that they hold out is
    where they lie, not what they are. (Those of the last fit may be near the margin, as in `SVC`.)

    Parameters
    ----------
    Cs : int or array of C's, default=10
        So many, evenly spaced in log C: from a C at which solutions are simple up four decades, as `LinearSVCCV`'s.
    gammas : int or array of γ's, default=3
        So many, evenly spaced in log γ around the "scale" of `SVC`: from a tenth of it to ten times as much; one is
        "scale" itself.
    cv, scoring, refit
        As in `LinearSVCCV`.
    kernel, degree, coef0, approximation, n_components, loss, solver, tol, max_iter, fit_intercept, penalize_intercept,
    class_weight, memory, random_state
        As in `SVC`; the kernel has a γ, and the approximation is "nystroem", "fourier" or such an object.
    n_jobs : int or None, default=None
        Threads: of the folds in parallel, then of the last fit.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    C_, gamma_, lam_ : float
        The choice; λ = 1/(C Σc) of all rows.
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
