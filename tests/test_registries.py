"""The public names of `primalsvm` are those of the registries, and each name means one thing."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

import primalsvm
from primalsvm import losses
from primalsvm.estimators.registry import ESTIMATORS, SELECTING, TRANSFORMERS
from primalsvm.losses.registry import LOSSES, named_losses
from primalsvm.maps.registry import KERNELS, MAPS
from primalsvm.solvers.registry import SOLVERS, named_solvers

ELSEWHERE = {"Certificate", "Checkpoint", "Problem", "Solution", "Status", "load", "open", "solve", "svm_path"}
ROOT = Path(__file__).parents[1]
LISTING_LOSSES = ("estimators/docstrings", "cli/training", "solvers/path")
LISTING_SOLVERS = ("estimators/docstrings", "solvers/policy", "solvers/solve")
OF_RANKINGS = {"CuttingPlanes"}  # a public solver, which a ranking may be given


def test_public_names_are_those_of_the_registries():
    solvers = {kind.__name__ for kind in named_solvers().values()} | OF_RANKINGS
    registered = {*ESTIMATORS, *SELECTING, *TRANSFORMERS, *LOSSES, *solvers}
    assert set(primalsvm.__all__) == registered | ELSEWHERE | {"__version__"}
    for registry in (ESTIMATORS, SELECTING, TRANSFORMERS, LOSSES, {name: SOLVERS[name] for name in solvers}):
        assert all(getattr(primalsvm, name) is kind and kind.__name__ == name for name, kind in registry.items())


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(primalsvm.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.name: node.module for node in block.body for alias in node.names}
    assert imported == {name: f"primalsvm.{home}" for name, home in primalsvm._HOME.items()}


def test_losses_are_all_of_the_losses():
    assert {*LOSSES} <= {*losses.__all__}


@pytest.mark.parametrize(
    ("place", "names"),
    [("README.md", named_losses(True)), *((f"src/primalsvm/{name}.py", named_losses(True)) for name in LISTING_LOSSES)]
    + [(f"src/primalsvm/{name}.py", named_solvers()) for name in LISTING_SOLVERS],
)
def test_lists_for_users_are_complete(place, names):
    lines = (ROOT / place).read_text().splitlines()
    assert any(all(name in first + second for name in names) for first, second in pairwise(lines))


def test_the_table_of_solvers_has_all_of_them():
    table = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert all(any(f"`{kind.__name__}(" in line for line in table) for kind in named_solvers().values())


def test_no_name_is_used_twice_in_files():
    names = [*LOSSES, *SOLVERS, *KERNELS, *MAPS, *TRANSFORMERS]
    assert len(names) == len(set(names))
