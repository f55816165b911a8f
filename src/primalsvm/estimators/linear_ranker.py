"""`LinearRanker`: linear ranking with a certificate."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.stats
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from primalsvm.data import Dataset, InMemory, as_block
from primalsvm.estimators import pipeline, prediction
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.encoders import Encoded
from primalsvm.estimators.estimator import Estimator
from primalsvm.estimators.features import LinearFeatures
from primalsvm.estimators.loading import Rows, check_numeric
from primalsvm.estimators.parameters import lam_of, memory_budget, store_parameters
from primalsvm.estimators.regression import as_floats
from primalsvm.estimators.warning import warn
from primalsvm.options import check_choice, check_integer
from primalsvm.ranking import Ranking, ranking_targets
from primalsvm.solvers.cutting_planes import CuttingPlanes
from primalsvm.solvers.pair_pegasos import PairPegasos
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.sources.opening import is_source

FEW_ENTRIES = 2**24  # of the rows of all pairs, up to which the pairs are formed
SOLVERS = ("auto", "cutting_planes", "pegasos")


class PairwiseRanking:
    """y holds relevances, and each row belongs to a query. Few pairs are solved as a classification problem."""

    checks: ClassVar = {"y_numeric": True, "ensure_min_samples": 2}
    labelled: ClassVar = True
    numeric: ClassVar = True

    def check_parameters(self, estimator: Any) -> None:
        solver_of(estimator.solver)

    def encode(self, estimator: Any, rows: Rows) -> Encoded:
        m = rows.data.shape[0]
        y = ranking_targets(query_codes(rows.qid, m), relevances(rows.y))
        block: Any = rows.data.block
        data = InMemory(
            block.in_order(), rows.data.weights, rows.data.threads
        )  # differences of rows require sorted indices
        objective = Ranking(lam_of(estimator, data.total_weight), estimator.average).on(data, y)
        queries = objective.queries
        if queries.without_pairs:
            n = queries.without_pairs + queries.levels.shape[0]
            warn(
                f"{queries.without_pairs} of {n} queries have one level of relevance only: they have no pairs and "
                "teach nothing",
                UserWarning,
            )
        solver = solver_of(estimator.solver)
        if solver is not None:
            return Encoded(data, None, objective=objective, solver=solver)
        if 2 * queries.n_pairs * data.entries > FEW_ENTRIES * m:
            return Encoded(data, None, objective=objective, solver=CuttingPlanes())
        pairs: Any = objective.as_classification()
        return Encoded(pairs.data, pairs.problem, objective=pairs)

    def units(self, encoded: Encoded, data: Dataset) -> None:
        return None


@fill_parameters
class LinearRanker(Estimator):
    """Linear learning to rank to a proven accuracy.

    Minimises the hinge over pairs of rows of one query, the first more relevant than the second,

        P(w) = λ/2 ‖w‖² + the mean over the queries of  (1/N_q) Σ cᵢ cⱼ max(0, 1 − ⟨w, xᵢ − xⱼ⟩),    N_q = Σ cᵢ cⱼ,

    until the relative duality gap is at most `tol`. Without queries all rows belong to one, and with two levels of
    relevance the sum is an upper bound on 1 − AUC. If there are many pairs they are not formed, and the cost depends on
    the number of rows only.

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength: λ = 1/(C Σc), where Σc is the total weight of the rows, not of the pairs.
    lam : float or None, default=None
        λ itself; overrides `C`.
    average : {"queries", "pairs"}, default="queries"
        Whether every query has the same weight, as in SVM^rank, or every pair, so that long queries count more.
    solver : {"auto", "cutting_planes", "pegasos"} or a solver object, default="auto"
        "auto" is "cutting_planes" if there are many pairs. If there are few, they are formed and solved as a
        classification problem by `Newton` or `DualAscent`. A `Pegasos` object takes its steps on random pairs.
    max_iter : int or None, default=None
        Maximum number of cutting planes, or of epochs; an epoch of Pegasos has as many pairs as there are rows. None is
        1,000, or a limit on the work if few pairs are solved as a classification problem.
    warm_start : bool, default=False
        Continue from the previous fit if the data have the same number of features.
    memory : float or None, default=None
        Bytes for the rows of a source (`primalsvm.open`); None is half of the available memory.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
        0: it cancels in every pair.
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import LinearRanker
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 3)), np.repeat(np.arange(30), 10)
    >>> relevance = np.digitize(X @ [1.0, -2.0, 0.5] + rng.normal(size=30)[qid], [-1.0, 0.0, 1.0])
    >>> ranker = LinearRanker().fit(X, relevance, qid=qid)
    >>> ranker.certificate_.relative_gap <= 1e-3, ranker.ndcg(X, relevance, qid=qid) > 0.99
    (True, True)
    """

    _task = PairwiseRanking()
    _features = LinearFeatures(reads_files=False)
    _coef_is_vector = True

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        average: Literal["queries", "pairs"] = "queries",
        solver: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        certify: bool = True,
        warm_start: bool = False,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to rows X, their relevances and their queries.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,); not with a source
            Relevances: higher is better.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is equivalent to repeating the row, 0 to leaving it out.
        qid : array of shape (n_samples,), optional
            The query of each row, numbers or strings in any order. The default is that of the source, or one query for
            all rows.

        Returns
        -------
        self
        """
        pipeline.fit(self, X, y, sample_weight, qid)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores by which to rank the rows of a query.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return prediction.scores_of(self, X)

    def score(self, X: Any, y: npt.ArrayLike | None = None, *, qid: npt.ArrayLike | None = None) -> float:
        """Kendall's τ-b between scores and relevances, averaged over the queries.

        Queries with one level of relevance are left out; τ-b is 0 if all scores of a query are equal.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,); not with a source
        qid : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        found = [
            0.0 if np.ptp(scores) == 0.0 else float(scipy.stats.kendalltau(relevance, scores).statistic)
            for relevance, scores in ranked_queries(self, X, y, qid)
        ]
        return float(np.mean(found))

    def ndcg(
        self, X: Any, y: npt.ArrayLike | None = None, *, qid: npt.ArrayLike | None = None, k: int | None = 10
    ) -> float:
        """Normalised discounted cumulative gain of the k rows ranked first, averaged over the queries.

        This is scikit-learn's `ndcg_score`: the gain is the relevance itself, which must not be negative. Queries with
        one level of relevance are left out.

        Parameters
        ----------
        X, y, qid : as in `score`
        k : int or None, default=10
            None counts all rows.

        Returns
        -------
        float
        """
        from sklearn.metrics import ndcg_score  # slow to import

        check_integer("k", k, none=True)
        ranked = ranked_queries(self, X, y, qid)
        return float(np.mean([ndcg_score([relevance], [scores], k=k) for relevance, scores in ranked]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def solver_of(solver: Any) -> Any:
    """The solver that the parameter means; None is "auto"."""
    if isinstance(solver, Pegasos):
        return PairPegasos(solver)
    if isinstance(solver, CuttingPlanes | PairPegasos):
        return solver
    check_choice("solver", solver, SOLVERS, "or give a solver object, CuttingPlanes() or Pegasos()")
    return {"auto": None, "cutting_planes": CuttingPlanes(), "pegasos": PairPegasos()}[solver]


def ranked_queries(
    ranker: LinearRanker, X: Any, y: Any, qid: Any
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.float64]]]:
    """Relevances and scores of each query with more than one level of relevance."""
    check_is_fitted(ranker, "intercept_")
    if is_source(X):
        prediction.check_source_alone(y, None)
        seen = X.for_model(getattr(ranker, "layout_", None), ranker.n_features_in_)
        with seen.rows_within(memory_budget(ranker)) as rows:
            check_numeric(rows.names)
            y, qid = rows.y, rows.qid if qid is None else qid
            scores = prediction.block_scores(ranker, as_block(rows.X))
    else:
        scores = ranker.predict(X)
    relevance = relevances(np.asarray(y))
    check_consistent_length(scores, relevance)
    codes = query_codes(qid, relevance.shape[0])
    order = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    parts = [part for part in np.split(order, edges) if np.ptp(relevance[part]) > 0]
    if not parts:
        raise ValueError("no query has rows of two levels of relevance: there is nothing to rank")
    return ((relevance[part], scores[part]) for part in parts)


def relevances(y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Relevances as numbers."""
    numbers = as_floats(y, "relevances")
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN or infinity")
    return numbers


def query_codes(qid: npt.ArrayLike | None, m: int) -> npt.NDArray[Any]:
    """The index of the query of each row."""
    if qid is None:
        return np.zeros(m, np.int64)
    given = np.asarray(qid)
    if given.shape != (m,):
        raise ValueError(f"qid has shape {given.shape}, but there are {m} rows: it needs one query for each")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ValueError("qid contains NaN")
    try:
        return np.unique(given, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise ValueError("qid must hold numbers, or texts, not both") from None
