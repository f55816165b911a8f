"""Every parameter is described once, in the order of the signature and with its default."""

import ast
import inspect
import re

import pytest

from primalsvm.estimators.docstrings import SHARED, entries_of, fill_parameters
from primalsvm.estimators.registry import ESTIMATORS


@pytest.mark.parametrize("kind", ESTIMATORS.values())
def test_the_docstring_describes_every_parameter(kind):
    section = inspect.getdoc(kind).split("Parameters\n----------\n")[1].split("\n\n")[0]
    entries, parameters = entries_of(section), inspect.signature(kind).parameters
    assert list(entries) == list(parameters)
    for name, entry in entries.items():
        (default,) = re.findall(r"default(?:=| is )(.*?)\.?$", entry, re.MULTILINE)
        assert ast.literal_eval(default) == parameters[name].default


def test_no_shared_description_is_unused():
    used = {name for kind in ESTIMATORS.values() for name in inspect.signature(kind).parameters}
    assert set(entries_of(SHARED)) <= used


def test_without_docstrings_nothing_is_filled():
    class Bare:
        __doc__ = None

    assert fill_parameters(Bare).__doc__ is None
