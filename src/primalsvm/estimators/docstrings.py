"""Descriptions of the parameters that several estimators share."""

import inspect
import re
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

SHARED = """
nu : float, default=0.5
    ν in (0, 1]: an upper bound on the share of outliers among the training rows and a lower bound on the share of
    support vectors. The share of outliers is ν up to ties and rounding; in a small exact machine less, as many rows are
    on the boundary and count as inliers.
C : float, default=1.0
    Inverse regularisation strength as in scikit-learn: λ = 1/(C Σc).
lam : float or None, default=None
    λ itself; overrides `C`. `partial_fit` requires it.
penalty : {"l2"}, default="l2"
    ‖w‖²; "l1" is refused, as it is another problem.
dual : {"auto", True, False}, default="auto"
    Without effect: `solver` says how the problem is solved, and P and D are both computed.
intercept_scaling : float, default=1.0
    Without effect on a free intercept, which is the limit of large values. With `penalize_intercept` it must be 1.
multi_class : {"ovr"}, default="ovr"
    One class against the rest; "crammer_singer" is refused, as it is another problem.
kernel : {"rbf", "laplacian", "chi2", "poly", "sigmoid", "linear", "precomputed"} or function, default="rbf"
    "sigmoid", tanh(γ ⟨s, t⟩ + c₀), and "poly" with `coef0` < 0 are not positive definite: the exact problem then is not
    convex, `fit` finds a stationary point as LIBSVM does, and there is no certificate.
gamma : {"scale", "auto"} or float, default="scale"
    γ of the kernel. "scale" is 1/(n_features · Var X), "auto" is 1/n_features; `partial_fit` takes them from the first
    batch.
degree : int, default=3
    Degree of the polynomial kernel.
coef0 : float, default=0.0
    Constant term of the polynomial and of the sigmoid kernel.
approximation : {"auto", "exact", "nystroem", "fourier"} or a Nystroem or FourierFeatures object, default="auto"
    "exact" solves the problem of the kernel itself; `solver` is then "auto" or "working_sets", or "pegasos" for
    kernelised Pegasos. The others approximate the kernel by features; parameters that are None in such an object are
    taken from the estimator. "auto" is "exact" up to about 5e10 operations, m² (1 + n/50)/2 for m rows of n features,
    and "nystroem" beyond, or if `n_components`, another solver, `early_stopping` or the logistic loss is asked for.
n_components : int or None, default=None
    Number of landmarks or Fourier features. None is 512, or the number of rows if there are fewer.
loss : {"hinge", "squared_hinge", "smoothed_hinge", "logistic"} or a loss object, default="hinge"
solver : {"auto", "dual_ascent", "newton", "interior_point", "pegasos", "asset"} or a solver object, default="auto"
    "auto" tries dual ascent, Newton and the interior-point method in turn, by estimated cost. An exact kernel machine
    has "working_sets", which is "auto" there, and "pegasos".
shrinking : bool, default=True
    Whether the solver of an exact machine leaves out rows that stay at a bound for a while, where kernel columns are
    not kept. The solution is the same.
cache_size : float or None, default=None
    Megabytes for kernel columns of an exact machine; with `n_jobs` of each of the pairs of classes that are solved at
    once. None is 4 GB, or `memory` if that is less. Where fewer than 4,096 columns fit, none is kept.
tol : float, default=1e-3
    Relative duality gap at which to stop; with features that approximate a kernel, that of the mapped problem. Small
    problems are solved to 1e-10.
max_iter : int or None, default=None
    Maximum number of epochs. None, or -1 as in scikit-learn, stops after 1,000 epochs or 1e11 operations (a minute or
    two), whichever comes last; an exact kernel machine counts no operations and stops after 1,000 epochs.
max_seconds : float or None, default=None
    Maximum number of seconds of solving.
fit_intercept : bool, default=True
penalize_intercept : bool, default=False
    Regularise the intercept with the weights, as LIBLINEAR does.
class_weight : dict, "balanced" or None, default=None
decision_function_shape : {"ovr", "ovo"}, default="ovr"
    With more than two classes, `decision_function` returns a score for each class ("ovr") or for each pair of classes
    ("ovo"). Exact machines solve a problem for each pair, whose scores give votes for the classes; approximate ones
    solve a problem for each class, whose differences are the scores of pairs.
break_ties : bool, default=False
    Whether classes with equal numbers of votes are told apart by the scores of `decision_function`; else the first of
    them is predicted. Approximate machines have no votes.
probability : {"sigmoid", "isotonic"} or bool, default=False
    Also fit `predict_proba`, by five-fold cross-validation: copies of the estimator score the rows that they were not
    fitted to. True is "sigmoid"; "deprecated", the default of scikit-learn's `SVC`, is False.
certify : bool, default=True
    Compute the certificate.
warm_start : bool, default=False
    Continue from the previous fit if the data have the same shape; the features of a kernel are then kept.
early_stopping : bool, default=False
    Hold out a share of the rows and keep the point with the lowest validation error: the error rate of a classifier,
    the mean loss of a regressor. `C` is still translated with the weight of all rows.
validation_fraction : float, default=0.1
    The share held out with `early_stopping`.
n_iter_no_change : int, default=5
    Number of evaluations without a lower validation error after which `early_stopping` stops.
checkpoint : Checkpoint or None, default=None
    Where to store the state of the fit, from which to continue after an interruption (`primalsvm.Checkpoint`). The
    features of a kernel are not stored but computed again.
memory : float or None, default=None
    Bytes for the rows of a source (`primalsvm.open`), or for the features of a kernel (with "exact", for rows of the
    kernel matrix). None is half of the available memory. A larger source is read again in each epoch, block by block;
    larger features are computed again in each pass.
random_state : int, RandomState instance or None, default=None
n_jobs : int or None, default=None
    Number of threads: None is one (in addition to those of BLAS), -1 all cores. The same `random_state` and `n_jobs`
    give the same bits.
verbose : int, default=0
    1 shows a progress bar.
"""


def entries_of(section: str) -> dict[str, str]:
    r"""The entries of a numpydoc section by the names of the parameters.

    Examples
    --------
    >>> entries_of("tol : float\n    Tolerance.\nseed : int")
    {'tol': 'tol : float\n    Tolerance.', 'seed': 'seed : int'}
    """
    return {entry.split(" :")[0]: entry for entry in re.split(r"\n(?=\S)", section.strip())}


def fill_parameters(kind: Kind) -> Kind:
    """Complete the section "Parameters" of a class's docstring, in the order of its signature.

    Parameters that the docstring does not describe get the shared description.
    """
    if kind.__doc__ is not None:  # python -OO removes docstrings
        before, attributes, after = inspect.cleandoc(kind.__doc__).partition("Attributes\n")
        summary, _, section = before.partition("Parameters\n----------\n")
        described = entries_of(SHARED) | entries_of(section)
        entries = "\n".join(described[name] for name in inspect.signature(kind).parameters)
        kind.__doc__ = f"{summary}Parameters\n----------\n{entries}\n\n{attributes}{after}"
    return kind
