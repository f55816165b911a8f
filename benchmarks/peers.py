"""The contestants: one small class each.

    prepare(X, y)                              what a user does once per matrix; not timed
    fit(data, lam, setting, threads, seed)     timed; returns w of  min λ/2 ‖w‖² + mean hinge,  no intercept

`settings` is the contestant's sweep over its own stopping rule, cheapest first. A contestant that cannot use more than
one thread in a binary fit says `threaded = False` and runs on one.
"""

import warnings
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

ITERATIONS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 150, 200, 300, 500)
EPOCHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)  # of stochastic steps
NEVER = 1e-12  # a tolerance that leaves the number of iterations to decide


class Contestant(Protocol):
    """What the benchmark needs of a contestant."""

    name: ClassVar[str]
    knob: ClassVar[str]
    settings: ClassVar[tuple[float, ...]]
    threaded: ClassVar[bool]

    def prepare(self, X: sp.csr_matrix, y: np.ndarray) -> Any:
        """The data as this contestant takes them."""

    def fit(self, data: Any, lam: float, setting: float, threads: int, seed: int) -> np.ndarray:
        """The weights."""


class _TakesArrays:
    def prepare(self, X: sp.csr_matrix, y: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
        return X, y


class Ours(_TakesArrays):
    """primalsvm's LinearSVC: checking the input and the certificate are part of its time."""

    name = "primalsvm"
    knob = "tol"
    settings = (2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5)
    threaded = True

    def fit(self, data: Any, lam: float, setting: float, threads: int, seed: int) -> np.ndarray:
        from primalsvm import LinearSVC

        model = LinearSVC(lam=lam, fit_intercept=False, tol=setting, n_jobs=threads, random_state=seed)
        return np.asarray(model.fit(*data).coef_)


class PaperPegasos(_TakesArrays):
    """Pegasos as the paper has it: independent draws, projection, the last iterate."""

    name = "Pegasos, the paper's"
    knob = "epochs"
    settings = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
    threaded = False
    options: ClassVar[dict[str, Any]] = {"sampling": "iid", "projection": True, "average": "last"}

    def fit(self, data: Any, lam: float, setting: float, threads: int, seed: int) -> np.ndarray:
        from primalsvm import LinearSVC, Pegasos

        steps = max(1, round(setting * data[0].shape[0]))
        solver = Pegasos(n_iter=steps, **self.options)
        model = LinearSVC(lam=lam, fit_intercept=False, solver=solver, certify=False, random_state=seed)
        return np.asarray(model.fit(*data).coef_)


class OurPegasos(PaperPegasos):
    """Pegasos with rows in shuffled blocks and the average that weighs iterate t by t."""

    name = "Pegasos"
    options: ClassVar[dict[str, Any]] = {"average": "weighted"}


class ScikitLearnLinearSVC(_TakesArrays):
    """scikit-learn's LinearSVC: LIBLINEAR's dual coordinate descent, one thread."""

    name = "LinearSVC"
    knob = "max_iter"
    settings = ITERATIONS
    threaded = False

    def fit(self, data: Any, lam: float, setting: float, threads: int, seed: int) -> np.ndarray:
        from sklearn.svm import LinearSVC

        X, y = data
        model = LinearSVC(
            loss="hinge",
            C=1.0 / (lam * X.shape[0]),
            fit_intercept=False,
            tol=NEVER,
            max_iter=int(setting),
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # stopping at max_iter is the point
            return np.asarray(model.fit(X, y).coef_)


class Liblinear:
    """liblinear-official: the same method without scikit-learn's conversion of the matrix, one thread."""

    name = "liblinear"
    knob = "-e"
    settings = (3.0, 2.0, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001)
    threaded = False

    def prepare(self, X: sp.csr_matrix, y: np.ndarray) -> Any:
        from liblinear.liblinear import problem

        return problem(y, sp.csr_matrix(X))

    def fit(self, data: Any, lam: float, setting: float, threads: int, seed: int) -> np.ndarray:
        from liblinear.liblinear import parameter
        from liblinear.liblinearutil import train

        model = train(data, parameter(f"-s 3 -B -1 -q -c {1.0 / (lam * data.l):.17g} -e {setting:g}"))
        w = np.ctypeslib.as_array(model.w, (model.nr_feature,)).copy()
        return w if model.label[0] > 0 else -w  # the weights point at the label that was seen first


class SnapML(_TakesArrays):
    """Snap ML's dual coordinate descent, with threads."""

    name = "snapml"
    knob = "max_iter"
    settings = ITERATIONS
    threaded = True

    def fit(self, data: Any, lam: float, setting: float, threads: int, seed: int) -> np.ndarray:
        from snapml import SupportVectorMachine

        X, y = data
        model = SupportVectorMachine(
            max_iter=int(setting), regularizer=lam * X.shape[0], tol=NEVER, n_jobs=threads, random_state=seed
        )
        return np.asarray(model.fit(X, y).coef_)


class SGD(_TakesArrays):
    """scikit-learn's SGDClassifier, last iterate, one thread."""

    name = "SGDClassifier"
    knob = "epochs"
    settings = EPOCHS
    threaded = False
    average = False

    def fit(self, data: Any, lam: float, setting: float, threads: int, seed: int) -> np.ndarray:
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(
            loss="hinge", alpha=lam, fit_intercept=False, max_iter=int(setting), tol=None,
            learning_rate="optimal", average=self.average, random_state=seed,
        )  # fmt: skip
        return np.asarray(model.fit(*data).coef_)


class AveragedSGD(SGD):
    """The same, averaged over its iterates."""

    name = "SGD averaged"
    average = True


OURS = Ours()
PEGASOS: tuple[Contestant, ...] = (OurPegasos(), PaperPegasos())
PEERS: tuple[Contestant, ...] = (ScikitLearnLinearSVC(), Liblinear(), SnapML(), SGD(), AveragedSGD())
