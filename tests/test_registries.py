"""The public names of `primalsvm` are those of the registries, and each name means one thing."""

import ast
from pathlib import Path

import primalsvm
from primalsvm.estimators.registry import ESTIMATORS, SELECTING, TRANSFORMERS
from primalsvm.losses.registry import LOSSES
from primalsvm.maps.registry import KERNELS, MAPS
from primalsvm.solvers.registry import SOLVERS, named_solvers

ELSEWHERE = {"Certificate", "Checkpoint", "Problem", "Solution", "Status", "load", "open", "solve", "svm_path"}
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


def test_no_name_is_used_twice_in_files():
    names = [*LOSSES, *SOLVERS, *KERNELS, *MAPS, *TRANSFORMERS]
    assert len(names) == len(set(names))
