"""D ≤ P* ≤ P on real data, with P* from solvers that share no code with this package (`make_references.py`).

And the gap is small: at most `tol` with default options; for Pegasos at most 1e-2 within 50 epochs.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from primalsvm import Hinge, LinearSVC, Pegasos, Problem, solve
from tests.real import datasets

REFERENCES = json.loads(Path(__file__).with_name("references.json").read_text())
CASES = [
    (name, lam, intercept, weighted)
    for name in ("a9a", "ijcnn1", "covtype", "newsgroups")
    for lam in (1e-4, 1e-5)
    for intercept in ("none", "free")
    for weighted in (False, True)
]
ROUNDING = 1e-9

pytestmark = pytest.mark.skipif(datasets.folder() is None, reason="PRIMALSVM_DATA names no folder of data sets")


def check_brackets(certificate, name, lam, intercept, weighted):
    reference = REFERENCES[f"{name} lam={lam:g} intercept={intercept} weighted={weighted}"]
    assert certificate.dual <= reference["primal"] * (1 + ROUNDING)
    assert certificate.primal >= reference["dual"] * (1 - ROUNDING)
    assert certificate.exact


@pytest.mark.parametrize(("name", "lam", "intercept", "weighted"), CASES)
def test_default_solver_brackets_the_optimum_within_tol(name, lam, intercept, weighted):
    X, y = getattr(datasets, name)()
    weight = datasets.weights(len(y)) if weighted else None
    clf = LinearSVC(lam=lam, fit_intercept=intercept == "free").fit(X, y, sample_weight=weight)
    assert clf.certificate_.relative_gap <= clf.tol
    check_brackets(clf.certificate_, name, lam, intercept, weighted)


@pytest.mark.parametrize(
    ("name", "lam", "intercept", "weighted"), [case for case in CASES if case[0] != "covtype" or not case[3]]
)
def test_pegasos_is_certified_to_a_percent_within_fifty_epochs(name, lam, intercept, weighted):
    X, y = getattr(datasets, name)()
    weight = datasets.weights(len(y)) if weighted else None
    problem = Problem(Hinge(), lam, intercept)
    solution = solve(problem, X, y, sample_weight=weight, solver=Pegasos(), tol=1e-2, max_iter=50)
    assert solution.n_epochs <= 50
    assert solution.certificate.relative_gap <= 1e-2
    check_brackets(solution.certificate, name, lam, intercept, weighted)


@pytest.mark.parametrize("name", ["a9a", "ijcnn1", "covtype", "newsgroups"])
def test_plain_defaults_reach_their_tolerance(name):
    X, y = getattr(datasets, name)()
    clf = LinearSVC().fit(X, y)
    assert clf.certificate_.relative_gap <= clf.tol
    assert np.all(np.isfinite(clf.coef_))
