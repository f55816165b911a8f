"""`import primalsvm` costs nothing: names are loaded when they are first used."""

import subprocess
import sys

import pytest

import primalsvm

HEAVY = ("numba", "sklearn", "matplotlib", "scipy", "numpy", "rich", "typer", "pandas")


def loaded_after(statement):
    script = f"{statement}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()


def test_import_loads_nothing_heavy():
    loaded = loaded_after("import primalsvm; primalsvm.__version__; dir(primalsvm)")
    assert "primalsvm" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_layer_below_does_not_need_scikit_learn():
    loaded = loaded_after("from primalsvm import Problem, Hinge, Pegasos, DualAscent, solve")
    assert "numba" in loaded
    assert not {"sklearn", "matplotlib", "rich", "typer"} & set(loaded)


def test_the_estimator_does_not_need_plots_or_the_command_line():
    assert not {"matplotlib", "typer"} & set(loaded_after("from primalsvm import LinearSVC"))


@pytest.mark.parametrize("name", primalsvm.__all__)
def test_every_public_name_is_there(name):
    assert getattr(primalsvm, name) is not None
    assert name in dir(primalsvm)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        primalsvm.Nonsense  # noqa: B018  # the access is the test
