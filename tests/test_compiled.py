"""Compiled kernels: cached, never stale, never fatal, the same in threads and in other processes."""

import importlib.util
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import primalsvm
from primalsvm import DualAscent, LinearSVC, Pegasos
from tests.reference import noisy

PACKAGE = Path(primalsvm.__file__).parent

VALUE = """
import numpy as np
from primalsvm.data import as_dataset
from primalsvm.losses import Hinge
from primalsvm.objective import Problem
from primalsvm.sums import loss_sum
objective = Problem(Hinge(), 0.5).on(as_dataset(np.array([[1.0], [-2.0]])), np.array([1.0, -1.0]))
print(objective.value(np.array([0.25]), 0.0))
print(sum(loss_sum.stats.cache_hits.values()), sum(loss_sum.stats.cache_misses.values()))
"""
# P = 0.25 · 0.0625 + ½ (max(0, k − 0.25) + max(0, k − 0.5)) with the hinge's margin at k
EXPECTED = {k: 0.25 * 0.0625 + 0.5 * (k - 0.25 + k - 0.5) for k in (1, 2)}


@pytest.fixture
def package(tmp_path):
    """A copy of the package without any cache."""
    shutil.copytree(PACKAGE, tmp_path / "primalsvm", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "primalsvm"


def run(script, package, **environment):
    """Run a script with the given copy of the package; returns its output, split, or the error."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    clean |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=clean, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_second_process_finds_kernels_compiled_and_an_edit_is_never_missed(package):
    value, hits, misses = run(VALUE, package)
    assert float(value) == pytest.approx(EXPECTED[1]) and (hits, misses) == ("0", "1")
    value, hits, misses = run(VALUE, package)
    assert float(value) == pytest.approx(EXPECTED[1]) and (hits, misses) == ("1", "0")
    source = package / "losses" / "margin.py"
    text = source.read_text()
    assert text.count("return max(0.0, 1.0 - y * p)\n") == 1
    times = source.stat()
    source.write_text(text.replace("return max(0.0, 1.0 - y * p)\n", "return max(0.0, 2.0 - y * p)\n"))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))  # not even when the clock says nothing changed
    value, hits, misses = run(VALUE, package)
    assert float(value) == pytest.approx(EXPECTED[2]) and (hits, misses) == ("0", "1")


MINE = """
from typing import NamedTuple
from primalsvm.compiled import kernel
from primalsvm.losses.margin import MarginLoss

class Scale(NamedTuple):
    scale: float = 1.0

class Mine(Scale, MarginLoss):
    def value(self, p, y):
        return self.scale * max(0.0, 1.0 - y * p)

    def dual_step(self, p, y, alpha, q):
        return alpha

@kernel
def half(x):
    return 0.5 * x
"""


def test_an_edit_to_code_outside_the_package_is_never_missed(package):
    script = VALUE.replace("import Hinge", "import Hinge\nfrom mine import Mine, half").replace(
        "Hinge(), 0.5", "Mine(), 0.5"
    )
    script += "print(half(1.0))\n"
    source = package.parent / "mine.py"
    source.write_text(MINE)
    assert [float(x) for x in run(script, package)] == [pytest.approx(EXPECTED[1]), 0, 1, 0.5]
    times = source.stat()
    source.write_text(MINE.replace("1.0 - y * p", "2.0 - y * p").replace("0.5 * x", "0.7 * x"))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [float(x) for x in run(script, package)] == [pytest.approx(EXPECTED[2]), 0, 1, 0.7]


@pytest.fixture
def stamps(package):
    """The stamps of modules of the copy, as they are now."""

    def found(*modules):
        spec = importlib.util.spec_from_file_location("copied", package / "compiled.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return [module.source_digest(f"primalsvm.{name}") for name in modules]

    return found


def edit(path):
    path.write_text(path.read_text() + "\n# edited\n")


KERNELS = ("sums", "data.csr", "solvers.steps", "maps.kernels", "sources.svmlight")  # modules with kernels


@pytest.mark.parametrize(
    ("edited", "stale"),
    [
        ("losses/margin.py", {"sums", "solvers.steps"}),
        ("losses/__init__.py", {"sums", "solvers.steps"}),
        ("data/csr.py", set(KERNELS)),
        ("data/blocks.py", set(KERNELS)),
        ("data/__init__.py", set(KERNELS)),
        ("compiled.py", set(KERNELS)),
        ("sums.py", {"sums"}),
        ("solvers/order.py", {"solvers.steps"}),
        ("maps/kernels.py", {"maps.kernels"}),
        ("sources/decimals.py", {"sources.svmlight"}),
        ("estimators/linear_svc.py", set()),
        ("estimators/__init__.py", set()),
        ("objective.py", set()),
        ("solvers/drive.py", set()),
        ("__init__.py", set()),
    ],
)
def test_the_stamp_is_of_the_sources_of_a_kernel(package, stamps, edited, stale):
    before = stamps(*KERNELS)
    edit(package / edited)
    changed = {name for name, old, new in zip(KERNELS, before, stamps(*KERNELS), strict=True) if old != new}
    assert changed == stale


def test_the_stamp_of_a_module_has_all_that_it_imports(package, stamps):
    """What Python itself loads of the package for a module, less than the stamp takes in, as imports may be late."""
    script = "import sys, {module}\nprint(*sorted(name for name in sys.modules if name.startswith('primalsvm.')))"
    for module in ("sums", "solvers.steps", "maps.kernels"):
        for name in run(script.format(module=f"primalsvm.{module}"), package):
            path = package.joinpath(*name.split(".")[1:])
            before = stamps(module)
            edit(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
            assert stamps(module) != before, (module, name)


def test_a_new_file_changes_no_stamp_before_it_is_imported(package, stamps):
    before = stamps("sums")
    (package / "losses" / "another.py").write_text("")
    assert stamps("sums") == before
    source = package / "losses" / "margin.py"
    source.write_text(source.read_text() + "\nfrom primalsvm.losses import (\n    another,  # noqa\n)\n")
    with_it = stamps("sums")
    assert with_it != before
    edit(package / "losses" / "another.py")
    assert stamps("sums") != with_it


FIT = """
import numpy as np
from primalsvm import Hinge, Pegasos, Problem, solve
X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
print(*solve(Problem(Hinge(), 0.1), X, [1, 1, -1, -1], solver=Pegasos(n_iter=500)).w)
"""


def here():
    """What FIT prints, in this process."""
    from primalsvm import Hinge, Problem, solve

    X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
    return [repr(float(x)) for x in solve(Problem(Hinge(), 0.1), X, [1, 1, -1, -1], solver=Pegasos(n_iter=500)).w]


def test_compiling_warns_of_nothing(package):
    assert run(FIT, package, PYTHONWARNINGS="error") == here()


def test_no_folder_for_the_cache_costs_the_compilation_only(package):
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file where Numba wants a folder")
    nowhere = "/dev/null/nowhere"
    environment = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "NUMBA_CACHE_DIR": nowhere}
    assert [float(x) for x in run(FIT, package, **environment)] == pytest.approx([float(x) for x in here()], rel=1e-12)
    assert not list(package.parent.rglob("*.nbi"))


def test_a_cache_folder_that_goes_away_costs_the_compilation_only(package):
    vanish = "import shutil, pathlib, primalsvm, primalsvm.sums\n" + (
        "for folder in pathlib.Path(primalsvm.__file__).parent.rglob('__pycache__'):\n"
        "    shutil.rmtree(folder)\n"
        "    folder.write_text('')\n"
    )
    assert float(run(vanish + VALUE, package)[0]) == pytest.approx(EXPECTED[1])


@pytest.mark.parametrize(("kind", "share"), [("nbi", 0.0), ("nbi", 0.5), ("nbc", 0.5)])
def test_a_damaged_cache_costs_the_compilation_only(package, kind, share):
    run(VALUE, package)
    files = list(package.rglob(f"*.{kind}"))
    assert files
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[: int(share * len(whole))])
    assert float(run(VALUE, package)[0]) == pytest.approx(EXPECTED[1])


# ---- at once, and in children ----------------------------------------------------------------------------------------

X, Y = noisy(3000, 40, seed=1)  # m·d > 10⁵


def fits(seed):
    """Bytes of fits by three solvers; the last with two threads."""
    options = {"lam": 1e-3, "random_state": seed, "tol": 1e-2}
    solvers = [("auto", None), (Pegasos(), None), (DualAscent(), 2)]
    return [LinearSVC(solver=solver, n_jobs=n, **options).fit(X, Y).coef_.tobytes() for solver, n in solvers]


def test_eight_threads_fitting_at_once_give_what_one_gives():
    alone = [fits(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fits, range(8))) == alone
    assert len({bits for fit in alone for bits in fit[1:]}) == 16  # different seeds did different work


CHILDREN = """
import hashlib
import multiprocessing
import sys
import threading

import numpy as np


def fits(seed):
    from primalsvm import DualAscent, LinearSVC, Pegasos

    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 40))
    y = np.where(X[:, 0] + rng.normal(size=3000) > 0, 1, -1)
    digest = hashlib.sha256()
    for solver, n_jobs in (("auto", None), (Pegasos(), None), (DualAscent(), 2)):
        clf = LinearSVC(lam=1e-2, tol=1e-2, solver=solver, n_jobs=n_jobs, random_state=seed).fit(X, y)
        digest.update(clf.coef_.tobytes())
    return digest.hexdigest()


def in_threads(seeds):
    found = {}
    threads = [threading.Thread(target=lambda s=s: found.setdefault(s, fits(s))) for s in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[s] for s in seeds]


if __name__ == "__main__":
    kind, seeds = sys.argv[1], [1, 2, 3]
    if kind == "threads first":  # eight threads are the first to need the kernels
        print(*in_threads(range(1, 9))[:3])
    elif kind == "here":
        print(*map(fits, seeds))
    else:
        if kind == "fork":
            fits(0)  # the parent has fitted before, with threads
        with multiprocessing.get_context(kind).Pool(2) as pool:
            print(*pool.map(fits, seeds))
"""


def test_forked_and_spawned_children_and_fresh_threads_give_what_one_process_gives(tmp_path):
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    found = {}
    for kind in ("here", "fork", "spawn", "threads first"):
        done = subprocess.run(
            [sys.executable, str(script), kind], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, (kind, done.stderr)
        found[kind] = done.stdout.split()
    assert len(set(found["here"])) == 3
    assert found["fork"] == found["spawn"] == found["threads first"] == found["here"]
