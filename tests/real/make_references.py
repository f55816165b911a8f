"""Compute references.json: P* of the real problems by solvers that share no code with this package.

    PRIMALSVM_DATA=… python -m tests.real.make_references

Few features: the interior-point method beside this file, whose primal and dual values bracket P* to 1e-9. Text:
LIBLINEAR without intercept and LIBSVM with a free one, at tight tolerances; P is then computed here, in NumPy.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.svm import SVC, LinearSVC

from tests.real import datasets
from tests.real.interior_point import solve_hinge

CASES = {
    "a9a": (1e-4, 1e-5),
    "ijcnn1": (1e-4, 1e-5),
    "covtype": (1e-4, 1e-5),
    "newsgroups": (1e-4, 1e-5),
}
FILE = Path(__file__).with_name("references.json")


def by_peers(X, y, lam, weight, free_intercept):
    C = 1.0 / (lam * weight.sum())
    if free_intercept:
        peer = SVC(kernel="linear", C=C, tol=1e-7, cache_size=4000)
    else:
        peer = LinearSVC(loss="hinge", C=C, tol=1e-10, max_iter=200_000, fit_intercept=False)
    keep = weight > 0
    peer.fit(X[keep], y[keep], sample_weight=weight[keep])
    coef = peer.coef_.toarray()[0] if hasattr(peer.coef_, "toarray") else peer.coef_[0]
    b = float(np.ravel(peer.intercept_)[0]) if free_intercept else 0.0
    primal = lam / 2 * coef @ coef + np.average(np.maximum(0.0, 1.0 - y * (X @ coef + b)), weights=weight)
    return primal, primal * (1 - 1e-6)


def main() -> None:
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in sys.argv[1:] or CASES:
        X, y = getattr(datasets, name)()
        for lam in CASES[name]:
            for free in (False, True):
                for weighted in (False, True):
                    weight = datasets.weights(len(y)) if weighted else np.ones(len(y))
                    solver = by_peers if name == "newsgroups" else solve_hinge
                    primal, dual = solver(X, y, lam, weight, free)
                    key = f"{name} lam={lam:g} intercept={'free' if free else 'none'} weighted={weighted}"
                    known[key] = {"primal": float(primal), "dual": float(dual)}
                    print(key, known[key], flush=True)
                    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
