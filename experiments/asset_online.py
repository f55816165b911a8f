"""ASSET's Table 3 and Figure 2: one pass over 1,000,000 deformed digits with Fourier features, nothing kept of them."""

import time
from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.common import Table
from benchmarks.datasets import mnist
from experiments.deformed_digits import BLOCK, stream
from experiments.harness import Case, Claim, Found, Options, verdict
from primalsvm import SVC, Asset, FourierFeatures

DIMENSIONS = (1024, 2048, 4096, 8192, 16384)
EXAMPLES, QUICK_EXAMPLES = 1_000_000, 12_000
TEST, SOME = 20_000, 5_000  # deformed test digits: for the last samples, and along the way
SAMPLES = 10  # of the last 10,000 iterations, one after each 1,000
LOOKS = tuple(k * 10**p for p in (3, 4, 5) for k in (1, 2, 5))  # examples after which to look
WINDOW = 100  # iterates that are averaged; in a stream between one and two times as many
GAMMA, LAM = 0.01, 1e-6
OTHER_LAMBDAS, TRIED = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4), 200_000
NAMES = {False: "ASSET_on", True: "ASSET*_on"}
# mean error and deviation of both, in percent, and seconds to train and to test
PAPER = {
    1024: ((11.5, 0.56), (11.8, 0.57), 1705, 34),
    2048: ((7.2, 0.47), (8.1, 0.45), 3418, 69),
    4096: ((4.8, 0.33), (5.8, 0.54), 6824, 139),
    8192: ((3.6, 0.30), (4.3, 1.06), 13375, 270),
    16384: ((3.0, 0.63), (3.5, 0.29), 26053, 546),
}

TITLE = "ASSET's Table 3 and Figure 2: online learning"
BUDGET = 1140
ABOUT = (
    "Handwritten digits, 0-4 against 5-9: one pass of `SVC.partial_fit` over 1,000,000 elastically deformed MNIST "
    "digits (our own deformations, about as hard as the paper's), d i.i.d. Fourier features, the paper's γ, no "
    f"intercept, the average of the last 100 to 200 iterates. λ = {LAM:g}: the last table shows others. The errors are "
    "on 20,000 deformed test digits: means ± deviations over ten samples of the last 10,000 iterations, as in the "
    "paper; along the way on 5,000 of them."
)


@cache
def digits(part: str) -> tuple[np.ndarray, np.ndarray]:
    """MNIST."""
    return mnist(part)


@cache
def test_digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Deformed test digits."""
    blocks = list(stream(*digits("t10k"), n, seed=1))
    return np.vstack([X for X, _ in blocks]), np.concatenate([y for _, y in blocks]) < 5


def error(model: SVC, n: int) -> float:
    """The share of deformed test digits on the wrong side."""
    X, y = test_digits(n)
    return float(np.mean(model.predict(X) != y))


def learner(d: int, star: bool, lam: float) -> SVC:
    """One that has seen nothing."""
    return SVC(
        gamma=GAMMA,
        lam=lam,
        approximation=FourierFeatures(d, frequencies="iid", form="offset"),
        solver=Asset(strongly_convex=star, average_last=WINDOW),
        fit_intercept=False,
        random_state=0,
    )


def one_pass(d: int, star: bool, quick: bool) -> dict[str, Any]:
    """Learn from the stream; errors on the way and in the end, and seconds."""
    examples, n, some = (QUICK_EXAMPLES, 1000, 1000) if quick else (EXAMPLES, TEST, SOME)
    model, seen, training = learner(d, star, LAM), 0, 0.0
    curve, last, testing = [], [], []
    for X, labels in stream(*digits("train"), examples):
        begin = time.perf_counter()
        model.partial_fit(X, labels < 5, classes=[False, True])
        training += time.perf_counter() - begin
        seen += len(labels)
        if seen in LOOKS:
            curve.append((seen, error(model, some)))
        if seen > examples - SAMPLES * BLOCK:
            begin = time.perf_counter()
            last.append(error(model, n))
            testing.append(time.perf_counter() - begin)
    curve.append((seen, last[-1]))
    plain, labels = digits("t10k")
    return {
        "curve": curve,
        "last": last,
        "plain": float(np.mean(model.predict(plain.astype(np.float32) / np.float32(255)) != (labels < 5))),
        "training": training,
        "testing": float(np.median(testing)),
    }


def other_lambda(lam: float, star: bool, quick: bool) -> float:
    """The error after fewer digits, with another λ."""
    model = learner(DIMENSIONS[0], star, lam)
    for X, labels in stream(*digits("train"), QUICK_EXAMPLES if quick else TRIED):
        model.partial_fit(X, labels < 5, classes=[False, True])
    return error(model, 1000 if quick else TEST)


def cases(options: Options) -> list[Case]:
    """Small dimensions first."""
    dimensions, lambdas = ((256,), OTHER_LAMBDAS[2:3]) if options.quick else (DIMENSIONS, OTHER_LAMBDAS)
    made = [
        Case(f"λ = {lam:g} | {NAMES[star]}", partial(other_lambda, lam, star, options.quick))
        for lam in lambdas
        for star in NAMES
    ]
    return made + [
        Case(f"{d} | {NAMES[star]}", partial(one_pass, d, star, options.quick)) for d in dimensions for star in NAMES
    ]


def dimensions_in(found: Found) -> list[int]:
    """Those of which both were measured."""
    there = [int(name.split(" | ")[0]) for name in found if name[0].isdigit()]
    return sorted({d for d in there if there.count(d) == len(NAMES)})


def of(found: Found, d: int, star: bool) -> dict[str, Any]:
    """One pass."""
    return found[f"{d} | {NAMES[star]}"]


def mean_error(found: Found, d: int, star: bool) -> float:
    """Of the ten samples, in percent."""
    return 100 * float(np.mean(of(found, d, star)["last"]))


def tables(found: Found) -> Iterator[Table]:
    """Table 3, ours and the paper's; other λ."""
    rows = []
    for d in dimensions_in(found):
        both = [of(found, d, star) for star in NAMES]
        cells = [f"{100 * np.mean(one['last']):.2f} ± {100 * np.std(one['last']):.2f} %" for one in both]
        plain = [f"{100 * one['plain']:.2f} %" for one in both]
        seconds = [f"{np.mean([one[key] for one in both]):.1f}" for key in ("training", "testing")]
        papers = PAPER.get(d)
        if papers is None:
            theirs = ("—",) * 4
        else:
            theirs = (
                *(f"{mean:.1f} ± {deviation:.2f} %" for mean, deviation in papers[:2]),
                *(f"{s:,}" for s in papers[2:]),
            )
        rows.append((str(d), *cells, *plain, *seconds, *theirs))
    columns = ("d", *NAMES.values(), "plain MNIST", "the same, *", "training, s", "testing, s")
    yield Table(
        "Test errors of the last 10,000 iterations, and seconds (generating the digits apart)",
        (*columns, *(f"paper's {name}" for name in NAMES.values()), "its training, s", "its testing, s"),
        rows,
    )
    tried = [name for name in found if name.startswith("λ")]
    lambdas = list(dict.fromkeys(name.split(" | ")[0] for name in tried))
    yield Table(
        f"Test error after {TRIED:,} digits, d = {DIMENSIONS[0]}",
        ("", *NAMES.values()),
        [(lam, *(f"{found[f'{lam} | {name}']:.2%}" for name in NAMES.values())) for lam in lambdas],
    )


def claims(found: Found) -> list[Claim]:
    """Table 3, and what §4.3 says of it."""
    made = []
    there = dimensions_in(found)
    for d in there:
        if d in PAPER:
            (mean, deviation), _, seconds, _ = PAPER[d]
            ours, one = mean_error(found, d, False), of(found, d, False)
            made.append(
                Claim(
                    "ASSET, Table 3",
                    f"ASSET_on, d = {d}: {mean:.1f} ± {deviation:.2f} % in {seconds:,} s",
                    verdict(ours <= mean + deviation, beaten=ours < mean - deviation),
                    f"{ours:.2f} ± {100 * np.std(one['last']):.2f} % in {one['training']:.0f} s, "
                    f"{seconds / one['training']:.0f} × as fast",
                )
            )
    if len(there) > 1:
        errors = [mean_error(found, d, False) for d in there]
        made.append(
            Claim(
                "ASSET, §4.3",
                "the error falls as the dimension grows",
                verdict(all(b < a for a, b in pairwise(errors))),
                ", ".join(f"{d}: {one:.2f} %" for d, one in zip(there, errors, strict=True)),
            )
        )
    if there:
        pairs = [(d, mean_error(found, d, False), mean_error(found, d, True)) for d in there]
        made.append(
            Claim(
                "ASSET, §4.3",
                "ASSET_on is more accurate than ASSET*_on with the same dimension",
                verdict(all(first < second for _, first, second in pairs)),
                ", ".join(f"{d}: {first:.2f} and {second:.2f} %" for d, first, second in pairs),
            )
        )
    return made


def figures(found: Found) -> dict[str, Any]:
    """Error against examples seen."""
    from experiments.figures import below, panels, plain_ticks, style

    figure, axes = panels(1, 2, width=5.2)
    highest = 0.0
    for axis, star in zip(axes, NAMES, strict=True):
        for k, d in enumerate(dimensions_in(found)):
            seen, errors = np.array(of(found, d, star)["curve"]).T
            highest = max(highest, *(100 * errors))
            axis.plot(seen, 100 * errors, **style(k, f"d = {d:,}"))
        axis.set(xscale="log", yscale="log", xlabel="digits seen", ylabel="test error, %")
        axis.set_title(NAMES[star], fontsize=10)
    for axis in axes:
        axis.set_ylim(2, highest * 1.1)
        plain_ticks(axis.yaxis, [2, 3, 5, 10, 20, 50])
    below(figure, axes[0], 5)
    return {"asset-online": figure}
