"""`NuSVC`: a kernel support vector classifier with ν in the place of C, with a certificate."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from primalsvm.estimators.calibration import method_of
from primalsvm.estimators.classification import Classification, Classifier
from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.encoders import Classes, Encoded
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.kernel_machine import KernelMachine
from primalsvm.estimators.loading import Rows
from primalsvm.estimators.parameters import cache_bytes, store_parameters
from primalsvm.losses import Hinge
from primalsvm.nu_problem import NuProblem, check_feasible
from primalsvm.one_vs_one import class_pairs
from primalsvm.options import check_share
from primalsvm.solvers.nu_working_sets import NuWorkingSets


class NuClassification(Classification):
    """Classes, with the ν-problem of each pair of them; λ = 1, as a classifier does not depend on it."""

    def check_parameters(self, estimator: Any) -> None:
        check_share("nu", estimator.nu)
        method_of(estimator.probability)

    def problem(self, estimator: Any, total_weight: float) -> Any:
        """The problem of each pair of classes."""
        return NuProblem(Hinge(), 1.0, float(estimator.nu))

    def encode(self, estimator: Any, rows: Rows) -> Encoded:
        encoded = super().encode(estimator, rows)
        if isinstance(encoded.decoder, Classes):  # before the first pair is solved
            codes, count = encoded.decoder.codes, len(encoded.decoder.classes)
            totals = np.bincount(codes + 1, encoded.data.weight_array(), count + 1)[1:]
            for i, j in class_pairs(count):
                check_feasible(estimator.nu, totals[i], totals[j])
        return replace(encoded, solver=NuWorkingSets(cache_bytes=cache_bytes(estimator)))


@fill_parameters
class NuSVC(KernelMachine, Classifier):
    """Kernel support vector classification where ν bounds the share of margin errors.

    Solves the exact problem of Schölkopf et al. (2000) for each pair of classes,
    min over w, b, ρ ≥ 0 of ½ ‖w‖² − ν ρ + (1/Σc) Σ cᵢ max(0, ρ − yᵢ (⟨w, φ(xᵢ)⟩ + b)), until the relative duality gap
    is at most `tol`. The classifier is (w, b)/ρ, whose margin is 1, as in scikit-learn. The certificate is that of this
    problem: its P is −(ν − h)²/(2 ‖w‖²) with the mean hinge loss h of the classifier (the best ρ for it), and
    D(α) = −½ ‖w(α)‖² with w(α) = (1/Σc) Σ cᵢ αᵢ φ(xᵢ), 0 ≤ yᵢ αᵢ ≤ 1, Σ cᵢ αᵢ = 0, Σ cᵢ |αᵢ| = ν Σc.

    Parameters
    ----------
    nu : float, default=0.5
        ν in (0, 1]: an upper bound on the share of margin errors and a lower bound on the share of support vectors, for
        each pair of classes, by weight. At most 2 min(c₊, c₋)/(c₊ + c₋), with c₊ and c₋ the weights of two classes.
    shrinking : bool, default=True
        Has no effect: all rows stay active.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the rows of a class. (In scikit-learn's `NuSVC` it has no effect.)

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, coef_, intercept_, gamma_, class_weight_, fit_status_,
    shape_fit_, classes_, multilabel_, calibration_, certificate_, certificates_, history_, status_, solver_, n_iter_,
    n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `SVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from primalsvm import NuSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> clf = NuSVC(nu=0.1, gamma=2.0).fit(X, y)
    >>> clf.certificate_.relative_gap < 1e-3, clf.score(X, y) > 0.95
    (True, True)
    """

    _task = NuClassification()
    _features = KernelFeatures()
    _n_iter_is_array = True

    # what other kernel machines let the user choose
    approximation: ClassVar = "exact"
    solver: ClassVar = "auto"
    lam: ClassVar = None
    warm_start: ClassVar = False

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        shrinking: bool = True,
        cache_size: float | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        probability: bool | Literal["sigmoid", "isotonic", "deprecated"] = False,
        certify: bool = True,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())
