"""Learning to rank: NDCG against a regression on the relevances, and seconds for many pairs."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.common import Options, Promise, Table, interleaved, median, spread, timed

ROWS, FEATURES, QUERIES = 100_000, 50, 2_000
QUICK_ROWS = 20_000
RANKING_LAMBDAS = (1e-3, 1e-4, 1e-5)
CS = (1e-3, 1e-2, 1e-1, 1.0)
PREPARED = ("as they are", "standardised")
OURS, PEER = "LinearRanker", "scikit-learn LinearSVR"
SECONDS = 5.0  # "in seconds"

ABOUT = (
    "NDCG@10 on `lambdarank` (3,005 rows in 201 queries to train on, 768 in 50 to test), beside scikit-learn's "
    "LinearSVR fitted to the relevances. For both, C is the best of a grid by the NDCG@10 of five folds of the "
    "training queries; features as they are and standardised, and for the promise each contestant has the one that "
    "its own folds prefer. The test rows choose nothing. 50 queries are few: the standard error is that of the paired "
    "difference. Queries with one level of relevance do not count.\n\n"
    "Seconds to a certified relative gap of 1e-3, one thread, of `LinearRanker.fit` (checks included) on generated "
    "rows: 2,000 queries with five levels, and one query with two levels (AUC, a fifth of the rows relevant)."
)


def generated(kind: str, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, relevances and queries; features of falling size, noise as large as the signal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, FEATURES)) * np.exp(-3.0 * np.arange(FEATURES) / FEATURES)
    z = X @ rng.normal(size=FEATURES) / np.sqrt(FEATURES) + rng.normal(size=m)
    if kind == "AUC":
        return X, (z > np.quantile(z, 0.8)).astype(float), np.zeros(m, int)
    q = rng.integers(QUERIES, size=m)
    z += 2.0 * rng.normal(size=QUERIES)[q]
    return X, np.digitize(z, np.quantile(z, [0.5, 0.7, 0.85, 0.95])).astype(float), q


def gains(y: np.ndarray, scores: np.ndarray, q: np.ndarray) -> np.ndarray:
    """NDCG@10 of every query that has two levels of relevance."""
    from sklearn.metrics import ndcg_score

    queries = [q == k for k in np.unique(q)]
    return np.array([ndcg_score([y[i]], [scores[i]], k=10) for i in queries if np.ptp(y[i]) > 0])


def fitted(name: str, C: float, X: np.ndarray, y: np.ndarray, q: np.ndarray) -> Any:
    """A contestant, fitted."""
    from sklearn.svm import LinearSVR

    from primalsvm import LinearRanker

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of LinearSVR's convergence, and of queries without pairs
        if name == OURS:
            return LinearRanker(C=C).fit(X, y, qid=q)
        return LinearSVR(C=C, max_iter=20_000, random_state=0).fit(X, y)


def quality(name: str, prepared: str, cs: tuple[float, ...]) -> dict[str, Any]:
    """C by folds of the training queries; then NDCG@10 of the test queries, once."""
    from sklearn.model_selection import GroupKFold
    from sklearn.preprocessing import StandardScaler

    (X, y, q), (X_test, y_test, q_test) = (datasets.lambdarank(part) for part in ("train", "test"))
    if prepared == "standardised":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    folds = list(GroupKFold(5).split(X, y, q))
    by_c = {
        C: float(np.mean([gains(y[b], fitted(name, C, X[a], y[a], q[a]).predict(X[b]), q[b]).mean() for a, b in folds]))
        for C in cs
    }
    best = max(by_c, key=lambda C: by_c[C])
    found = gains(y_test, fitted(name, best, X, y, q).predict(X_test), q_test)
    return {"C": best, "folds": by_c[best], "test": found.tolist()}


def measure(options: Options, console: Console) -> dict[str, Any]:
    """NDCG of both contestants, and seconds of ours."""
    from primalsvm import LinearRanker

    cs = CS[1:3] if options.quick else CS
    with threadpool_limits(1):
        found = {f"{name}, {prepared}": quality(name, prepared, cs) for name in (OURS, PEER) for prepared in PREPARED}
    m = QUICK_ROWS if options.quick else ROWS
    problems = {kind: generated(kind, m) for kind in ("queries", "AUC")}
    gaps: dict[str, float] = {}

    def run(kind: str, lam: float) -> float:
        X, y, q = problems[kind]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a query may have one level only
            seconds, ranker = timed(lambda: LinearRanker(lam=lam, n_jobs=1).fit(X, y, qid=q))
        gaps[_name(kind, lam)] = ranker.certificate_.relative_gap
        return seconds

    works = {
        _name(kind, lam): (lambda kind=kind, lam=lam: run(kind, lam)) for kind in problems for lam in RANKING_LAMBDAS
    }
    times = interleaved(works, 1 + options.repeats)
    return {
        "rows": m,
        "quality": found,
        "times": {name: seconds[1:] for name, seconds in times.items()},  # the first round warms the kernels
        "gaps": gaps,
    }


def _name(kind: str, lam: float) -> str:
    return f"{kind}, λ = {lam:g}"


def _preferred(results: dict[str, Any], name: str) -> str:
    """What a contestant's folds prefer."""
    return max((f"{name}, {prepared}" for prepared in PREPARED), key=lambda key: results["quality"][key]["folds"])


def _difference(results: dict[str, Any], ours: str, theirs: str) -> tuple[float, float]:
    """How much higher our test NDCG is, and the standard error of that, by query."""
    apart = np.subtract(results["quality"][ours]["test"], results["quality"][theirs]["test"])
    return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))


def promises(results: dict[str, Any]) -> list[Promise]:
    """NDCG no lower, and seconds."""
    apart, error = _difference(results, _preferred(results, OURS), _preferred(results, PEER))
    slowest = max(median(seconds) for seconds in results["times"].values())
    worst = max(results["gaps"].values())
    return [
        Promise("lambdarank: NDCG@10 no lower than LinearSVR's", f"{apart:+.4f} ± {error:.4f}", apart >= 0.0),
        Promise(
            f"{results['rows']:,} generated rows ranked in {SECONDS:g} s, to a gap of 1e-3",
            f"at most {slowest:.2f} s, gap {worst:.1e}",
            slowest <= SECONDS and worst <= 1e-3,
        ),
    ]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """NDCG, then seconds."""
    rows = []
    for prepared in PREPARED:
        apart, error = _difference(results, f"{OURS}, {prepared}", f"{PEER}, {prepared}")
        for name in (OURS, PEER):
            one = results["quality"][f"{name}, {prepared}"]
            ahead = f"{apart:+.4f} ± {error:.4f}" if name == OURS else ""
            rows.append((name, prepared, f"{one['C']:g}", f"{one['folds']:.4f}", f"{np.mean(one['test']):.4f}", ahead))
    yield Table(
        "lambdarank, NDCG@10", ("model", "features", "C chosen", "folds", "test", "test, ours − LinearSVR"), rows
    )
    yield Table(
        f"{results['rows']:,} generated rows, {FEATURES} features, one thread",
        ("problem", "median, s", "range, s", "relative gap"),
        [
            (name, f"{median(seconds):.2f}", spread(seconds, 2), f"{results['gaps'][name]:.1e}")
            for name, seconds in results["times"].items()
        ],
    )
