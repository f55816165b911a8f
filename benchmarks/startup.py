"""What a process pays before its first result: the import, the first fit with cached kernels, compiling them.

Whole processes are timed. They share a kernel cache of their own, empty at first, so the first fit shows the
compilation.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from benchmarks.common import Options, Promise, Table, interleaved, median, spread, timed

ROUNDS = 10

SMALL_FIT = """
import numpy as np
from primalsvm import LinearSVC
X = np.random.default_rng(0).standard_normal((200, 5))
LinearSVC().fit(X, X[:, 0] + X[:, 1] > 0)
"""
SPARSE_FIT = """
import numpy as np, scipy.sparse as sp
from primalsvm import LinearSVC
X = sp.random(2000, 500, 0.05, format="csr", dtype=np.float32, random_state=0)
LinearSVC(fit_intercept=False).fit(X, np.arange(2000) % 2)
"""
SCRIPTS = {
    "bare Python": "pass",
    "import primalsvm": "import primalsvm",
    "import sklearn, numba": "import sklearn, numba",
    "import sklearn.svm, numba": "import sklearn.svm, numba",
    "first small fit, kernels cached": SMALL_FIT,
}

ABOUT = (
    "Seconds of whole processes, in turn. The first small fit is `LinearSVC().fit` on 200 × 5 numbers in a "
    "process that finds its kernels in the cache; compiling them, once per machine, is shown apart: for that fit, "
    "and for a sparse float32 one without intercept, the kind timed above."
)


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Medians over processes."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}

        def run(script: str) -> float:
            return timed(lambda: subprocess.run([sys.executable, "-c", script], check=True, env=environment))[0]

        cold = {"small dense fit": run(SMALL_FIT), "sparse float32 fit": run(SPARSE_FIT)}
        warm = {"small dense fit": run(SMALL_FIT), "sparse float32 fit": run(SPARSE_FIT)}
        works = {name: (lambda script=script: run(script)) for name, script in SCRIPTS.items()}
        interleaved(works, 1)
        times = interleaved(works, 3 if options.quick else ROUNDS)
    return {"times": times, "compile": {name: cold[name] - warm[name] for name in cold}}


def promises(results: dict[str, Any]) -> list[Promise]:
    """Under 0.15 s for the import, within 0.6 s of the imports for the first fit."""
    at = {name: median(found) for name, found in results["times"].items()}
    added = at["import primalsvm"] - at["bare Python"]
    fit = at["first small fit, kernels cached"] - at["import sklearn.svm, numba"]
    return [
        Promise("`import primalsvm` adds under 0.15 s to a bare Python", f"{added:.3f} s", added < 0.15),
        Promise(
            "a second process's first small fit ends within 0.6 s of importing scikit-learn (`sklearn.svm`) and Numba",
            f"{fit:.2f} s later",
            fit < 0.6,
        ),
    ]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """Processes and compilation."""
    bare = median(results["times"]["bare Python"])
    yield Table(
        "Whole processes",
        ("process", "median, s", "range, s", "beyond bare Python, s"),
        [
            (name, f"{median(found):.3f}", spread(found), f"{median(found) - bare:.3f}")
            for name, found in results["times"].items()
        ],
    )
    yield Table(
        "Compiling the kernels, once per machine",
        ("kernels of a", "seconds"),
        [(name, f"{seconds:.1f}") for name, seconds in results["compile"].items()],
    )
