"""Rules that the linter of imports cannot hold: outside `data/` nobody asks which kind of block or data set it has."""

import ast
from pathlib import Path

import primalsvm
from primalsvm import data

PACKAGE = Path(primalsvm.__file__).parent
KINDS = {name for name in dir(data) if isinstance(getattr(data, name), type) and hasattr(getattr(data, name), "take")}
KINDS -= {"Batch", "Weights"}


def asked_kinds(path):
    """The names of classes that a file hands to isinstance or issubclass."""
    for node in ast.walk(ast.parse(path.read_text())):
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if called in ("isinstance", "issubclass"):
            yield from (part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name))


def test_kinds_of_blocks_and_data_sets_are_known_in_data_only():
    assert {"CSR", "Dense", "InMemory", "OutOfCore", "Whitened", "Mapped", "KernelMatrix"} <= KINDS
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "data":
            assert not KINDS & set(asked_kinds(path)), path.relative_to(PACKAGE)


def test_solvers_and_states_are_not_told_apart_by_the_driver():
    assert not list(asked_kinds(PACKAGE / "solvers" / "drive.py"))
