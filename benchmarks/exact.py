"""Newton to a relative gap of 1e-6 where first-order methods crawl: dense features, many more rows than features.

Standardised covtype (class 1 against the rest, no intercept) and MNIST with 1,024 Nyström features. The peers are given
time to come within 1e-3 of the optimum; ours has to be certified to 1e-6 within 1.5 times the fastest of them, or
within 60 seconds where none gets there.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common import Options, Promise, Table, hinge_objective, median, timed
from benchmarks.cuts import POOLS, task
from benchmarks.peers import PEERS

ACCURATE = 1e-6
PEERS_GOAL = 1e-3
PATIENCE = 60.0  # seconds that a peer is given
MARGIN = 1.5
SWEEP = (10, 30, 100, 300, 1000)
CONTESTANTS = ("LinearSVC", "snapml", "SGDClassifier")

ABOUT = (
    "Seconds of `LinearSVC(solver=Newton(), tol=1e-6).fit` (certified; two threads, as the peers) on dense features "
    "with many more rows than features, against the first run of LinearSVC, snapml and SGDClassifier, swept over 10, "
    "30, 100, 300 and 1,000 iterations, that comes within 1e-3 of the optimum. A dash: none did within 60 seconds."
)


def covtype() -> tuple[np.ndarray, np.ndarray]:
    """Standardised features, class 1 against the rest."""
    X, y = POOLS["COVTYPE"]()
    X = X.astype(np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y.astype(float)


def mnist_features() -> tuple[np.ndarray, np.ndarray, float]:
    """1,024 Nyström features in single precision, and λ."""
    from primalsvm import Nystroem

    one = task("MNIST")
    Z = Nystroem(one.components, gamma=one.gamma, random_state=0).fit_transform(one.X)
    return Z, one.y.astype(float), 1.0 / (one.C * len(one.y))


def first_to_get_there(X: np.ndarray, y: np.ndarray, lam: float, best: float) -> dict[str, float | None]:
    """Seconds of each peer's first run within 1e-3 of the optimum."""
    found: dict[str, float | None] = {}
    for peer in PEERS:
        if peer.name not in CONTESTANTS:
            continue
        found[peer.name] = None
        data = peer.prepare(X, y)
        for n in SWEEP:
            with threadpool_limits(2):
                seconds, w = timed(lambda peer=peer, data=data, n=n: peer.fit(data, lam, n, 2, 0))
            if hinge_objective(X, y, w, lam) <= (1 + PEERS_GOAL) * best:
                found[peer.name] = seconds
                break
            if seconds > PATIENCE / 3:  # the next run would take more than the patience
                break
    return found


def measure(options: Options, console: Console) -> dict[str, Any]:
    """All problems."""
    from primalsvm import LinearSVC, Newton

    X, y = covtype()
    problems = [("covtype", X, y, lam) for lam in (1e-4, 1e-6)]
    if not options.quick:
        problems.append(("MNIST, 1,024 features", *mnist_features()))
    results: dict[str, Any] = {"found": []}
    for name, X, y, lam in problems:
        times, gaps = [], []
        for _ in range(options.repeats + 1):
            model = LinearSVC(lam=lam, fit_intercept=False, tol=ACCURATE, solver=Newton(), n_jobs=2, random_state=0)
            seconds, _ = timed(lambda model=model, X=X, y=y: model.fit(X, y))
            times.append(seconds)
            gaps.append(model.certificate_.relative_gap)
        peers = first_to_get_there(X, y, lam, model.certificate_.dual)
        times = times[1:]  # the first one compiles
        results["found"].append({"name": name, "lam": lam, "seconds": times, "gap": max(gaps), "peers": peers})
        console.print(f"{name}, λ = {lam:.2g}: {median(times):.2f} s to {max(gaps):.1e}; peers to 1e-3: {peers}")
    return results


def _limit(one: dict[str, Any]) -> float:
    there = [seconds for seconds in one["peers"].values() if seconds is not None]
    return MARGIN * min(there) if there else PATIENCE


def promises(results: dict[str, Any]) -> list[Promise]:
    """Accurate, and in time."""
    made = []
    for one in results["found"]:
        seconds = median(one["seconds"])
        made.append(
            Promise(
                f"Newton, {one['name']}, λ = {one['lam']:.1g}: certified to 1e-6 within {_limit(one):.1f} s",
                f"{one['gap']:.1e} in {seconds:.2f} s",
                one["gap"] <= ACCURATE and seconds <= _limit(one),
            )
        )
    return made


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """All problems."""
    yield Table(
        "Seconds: ours to 1e-6, the peers to 1e-3",
        ("problem", "λ", "Newton", "gap", *CONTESTANTS),
        [
            (
                one["name"],
                f"{one['lam']:.1g}",
                f"{median(one['seconds']):.2f}",
                f"{one['gap']:.1e}",
                *(f"{s:.1f}" if (s := one["peers"][name]) is not None else "—" for name in CONTESTANTS),
            )
            for one in results["found"]
        ],
    )
