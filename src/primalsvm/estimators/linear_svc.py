"""`LinearSVC`: a linear support vector classifier with a certificate."""

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.streaming import StreamingClassifier
from primalsvm.inputs import as_rows
from primalsvm.losses import Loss
from primalsvm.memory import check_fits
from primalsvm.rows import Batch, Rows, Stored, Vector, shape
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.block_ascent import BlockAscent
from primalsvm.solvers.drive import choose
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import Solver
from primalsvm.sources.filed import filed_rows, inspect_filed
from primalsvm.team import team_for

ROW_BYTES = 48  # that Newton keeps of each row
VECTORS = 3  # of a double for each feature: no solver keeps fewer (measured: 3 to 9)


class LinearSVC(StreamingClassifier):
    """Linear support vector classification to a proven accuracy.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) until the relative duality gap is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        As in scikit-learn: λ = 1/(C Σc).
    lam : float or None, default=None
        λ itself; overrides `C`. Needed by `partial_fit`.
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "logistic"} or a loss object, default="hinge"
    solver : {"auto", "dual_ascent", "newton", "pegasos", "asset"} or a solver object, default="auto"
    tol : float, default=1e-3
        Relative duality gap to reach, at least. Small problems are solved to 1e-10.
    max_iter : int, default=1000
        Epochs at most.
    max_seconds : float or None, default=None
        Seconds of solving at most.
    fit_intercept : bool, default=True
    penalize_intercept : bool, default=False
        Regularise the intercept with the weights, as LIBLINEAR does.
    class_weight : dict, "balanced" or None, default=None
    certify : bool, default=True
        Compute the certificate.
    warm_start : bool, default=False
        Go on from the previous fit where the data have the same shape.
    early_stopping : bool, default=False
        Hold out a share of the rows and keep the point with the lowest error there. (`C` is still translated with the
        weight of all rows.)
    validation_fraction : float, default=0.1
        The share held out with `early_stopping`.
    n_iter_no_change : int, default=5
        Evaluations without a lower held-out error after which `early_stopping` stops.
    checkpoint : Checkpoint or None, default=None
        Where to keep the state of the fit, to go on from there after a crash (`primalsvm.Checkpoint`).
    memory : float or None, default=None
        Bytes that the rows of a source (`primalsvm.open`) may take; None is half of what is available. Of a larger
        source blocks of rows are read in each epoch, and dual ascent goes over these (`BlockAscent`).
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one, -1 all cores. The same `random_state` and `n_jobs` give the same bits.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    certificate_ : Certificate or None
        Proof of accuracy: D ≤ P* ≤ P.
    history_ : structured ndarray
        One row per evaluation: epoch, steps, seconds, primal, dual, gap, validation_error.
    status_ : Status
    solver_ : the solver object that was used
    n_iter_ : int
        Epochs.
    n_steps_ : int
        Updates.
    n_features_in_, n_samples_fit_ : int
    feature_names_in_ : ndarray, if the input had names
    layout_ : how the rows of a source became features, after a fit to one

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import LinearSVC
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> clf = LinearSVC(lam=1e-2).fit(X, y)
    >>> clf.certificate_.relative_gap < 1e-9
    True
    >>> float(clf.score(X, y))
    0.95
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_seconds: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
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
        self.C = C
        self.lam = lam
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.certify = certify
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, cache: Path | None) -> Self:
        _, batch = self._enter(X, y, sample_weight, rows_checked=cache is not None)
        m, d = shape(batch.rows)
        check_fits(VECTORS * 8 * d, f"the weights of {d} features", "number the features that occur, or hash them")
        problem, seed = self._problem(batch), self._seed()
        training, validation = self._hold_out(batch, seed, cache)
        solver = choose(self.solver, *shape(training.rows))
        # Newton reads mapped rows in order, which is as good as any way, but keeps some numbers of each.
        if cache is None or (isinstance(solver, Newton) and (self.solver != "auto" or ROW_BYTES * m <= self._budget())):
            if cache is not None:
                as_rows(batch.rows)
            solution = self._solve(problem, training, validation, seed, solver)
        else:
            at_once, drop = int(self._budget() / 2), self.memory is not None
            with filed_rows(cache, at_once, drop, self.n_jobs) as rows:
                inspect_filed(rows, self.n_jobs)
                filed = training._replace(rows=rows)
                solver = BlockAscent() if isinstance(solver, DualAscent | Newton) else solver
                solution = self._solve(problem, filed, validation, seed, solver)
        self._keep(solution)
        self._end_stream()
        return self

    def _scores(self, rows: Stored) -> npt.NDArray[np.float64]:
        """⟨w, x⟩ + b for every row."""
        with team_for(self.n_jobs) as team:
            scores = team.scores(rows, self.coef_[0])
        scores += self.intercept_[0]
        return scores

    # ---- streams: the features are the rows themselves ---------------------------------------------------------------

    def _check_features(self) -> None:
        pass

    def _begin_features(self, X: Any, batch: Batch, multiplicity: Vector | None) -> None:
        self._solution = None

    def _features_of(self, batch: Batch, position: int) -> Rows:
        return batch.rows

    def _unit_length(self) -> bool:
        return False

    def _default_online(self) -> Asset | Pegasos:
        return Pegasos()

    def _after_batch(self) -> None:
        pass
