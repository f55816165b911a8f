"""`NuSVR`: kernel support vector regression with ν in the place of ε, with a certificate."""

from dataclasses import replace
from typing import Any, ClassVar

from primalsvm.estimators.docstrings import fill_parameters
from primalsvm.estimators.encoders import Encoded
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.kernel_machine import KernelMachine
from primalsvm.estimators.loading import Rows
from primalsvm.estimators.parameters import cache_bytes, lam_of, store_parameters
from primalsvm.estimators.regression import Regression, Regressor
from primalsvm.losses import EpsilonInsensitive
from primalsvm.nu_problem import NuProblem
from primalsvm.options import check_share
from primalsvm.solvers.nu_working_sets import NuWorkingSets


class NuRegression(Regression):
    """Numbers, with the ν-problem of regression."""

    def check_parameters(self, estimator: Any) -> None:
        check_share("nu", estimator.nu)

    def problem(self, estimator: Any, total_weight: float) -> Any:
        """The problem in the units of y."""
        return NuProblem(EpsilonInsensitive(), lam_of(estimator, total_weight), float(estimator.nu))

    def encode(self, estimator: Any, rows: Rows) -> Encoded:
        return replace(super().encode(estimator, rows), solver=NuWorkingSets(cache_bytes=cache_bytes(estimator)))


@fill_parameters
class NuSVR(KernelMachine, Regressor):
    """Kernel support vector regression where ν bounds the share of errors outside of the tube.

    Solves the exact problem of Schölkopf et al. (2000), the minimum over w, b and ε ≥ 0 of
    λ/2 ‖w‖² + ν ε + (1/Σc) Σ cᵢ max(0, |yᵢ − ⟨w, φ(xᵢ)⟩ − b| − ε) with λ = 1/(C Σc), until the relative duality gap is
    at most `tol`. The certificate is that of this problem: its P is the value at the best ε for (w, b), a
    (1 − ν)-quantile of the absolute errors, and D(α) = (1/Σc) Σ cᵢ αᵢ yᵢ − λ/2 ‖w(α)‖² with
    w(α) = (1/(λ Σc)) Σ cᵢ αᵢ φ(xᵢ), |αᵢ| ≤ 1, Σ cᵢ αᵢ = 0, Σ cᵢ |αᵢ| ≤ ν Σc.

    Parameters
    ----------
    nu : float, default=0.5
        ν in (0, 1]: an upper bound on the share of rows with an error above ε and a lower bound on the share of support
        vectors, by weight.
    shrinking : bool, default=True
        Has no effect: all rows stay active.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, coef_, intercept_, gamma_, fit_status_, shape_fit_,
    certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `SVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import NuSVR
    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> reg = NuSVR(nu=0.2, gamma=1.0, C=10.0).fit(X, np.sin(X[:, 0]))
    >>> reg.certificate_.relative_gap < 1e-3, bool(np.abs(reg.predict(X) - np.sin(X[:, 0])).max() < 0.01)
    (True, True)
    """

    _task = NuRegression()
    _features = KernelFeatures()

    # what other kernel machines let the user choose
    approximation: ClassVar = "exact"
    solver: ClassVar = "auto"
    lam: ClassVar = None
    warm_start: ClassVar = False

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        shrinking: bool = True,
        cache_size: float | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        certify: bool = True,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())
