"""scikit-learn's own tests of its `svm` module, run against our classes.

The source of the installed `sklearn/svm/tests/test_svm.py` is executed with our classes in the place of scikit-learn's.
Tests that do not pass are in `DIFFERENCES` with the reason; each is checked to fail, so that the table stays true. None
of them is about a wrong result. NuSVC and NuSVR are replaced where the package has them.
"""

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

OURS = ("SVC", "SVR", "OneClassSVM", "LinearSVC", "LinearSVR")

PRIVATE = "of private parts of scikit-learn's implementation"
TEXT = "the same error, in other words"
REFUSED = "weights below 0 are refused; scikit-learn leaves such rows out"
L1 = "penalty='l1' is refused by name"
DIFFERENCES: dict[str, str] = {}

SHIM = """
import sys
import types

import sklearn.svm
import primalsvm

ours = {name: getattr(primalsvm, name) for name in %(ours)r}
shim = types.ModuleType("sklearn.svm")
shim.__dict__.update({**vars(sklearn.svm), **ours})
source = open(%(path)r).read()
sys.modules["sklearn.svm"] = shim
sklearn.svm = shim
exec(compile(source, %(path)r, "exec"), globals())
"""


def test_scikit_learns_tests_of_svm(tmp_path):
    spec = importlib.util.find_spec("sklearn.svm.tests.test_svm")
    (tmp_path / "test_theirs.py").write_text(SHIM % {"ours": OURS, "path": spec.origin})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "--tb=line", "test_theirs.py"]
    print(tmp_path)
