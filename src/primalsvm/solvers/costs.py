"""The costs of solvers in operations. An operation is the time of a visit to a dense entry, about a nanosecond.

The counts decide which solver is tried, and when it hands over (`policy`, `sequence`). They depend on shapes and on
work done, never on the clock, so that a fit uses the same solvers every time and on every machine. The units were
measured once, on one core with AVX-512: dual ascent visits an entry of a dense row in 0.8 to 1.1 ns, of a sparse row in
2 ns, and needs 50 ns for each row; a pass over all rows reads a dense entry in 0.4 ns; BLAS does a multiply-add in
0.022 ns.
"""

from typing import NamedTuple

from primalsvm.data import Dataset

# A visit to an entry of a sparse row, or a pass over it.
SPARSE_ENTRY = 2.0
# A pass over an entry of a dense row.
DENSE_PASS = 0.4
# A visit to a row, in addition to its entries.
ROW = 50.0
# A visit to a row and to an entry for many problems at once, for each problem (measured on letter and text).
JOINT_ROW, JOINT_ENTRY, JOINT_SPARSE_ENTRY = 5.0, 0.1, 0.8
# A multiply-add in BLAS.
BLAS = 0.022
# A factorised system has at most this many equations: 512 MB. OpenBLAS crashes with 16,000; 12,000 work.
LARGEST_FACTOR = 8192
# A larger system takes this many conjugate-gradient steps.
PRODUCTS = 100
# The share of a feature, or of a stored entry of a sparse row, in a kernel value, which itself takes one operation
# (measured in single precision, with its use).
KERNEL_ENTRY, KERNEL_SPARSE_ENTRY = 0.02, 0.5
# The time in Python of a sweep and of steps, whatever the size.
SWEEP, NEWTON_STEP, INTERIOR_STEP = 5e4, 2.5e5, 7e5
# Adding a product of two sparse entries to a matrix.
SCATTER = 4.0
# Newton is expected to take this many steps (measured: 5 to 60 where it is useful).
NEWTON_STEPS = 25
# Newton's first steps use a sample if one with this many rows per feature and this many entries is at most this share
# of all rows. All rows are then used by the last number of steps only.
SAMPLE_ROWS, SAMPLE_ENTRIES, SAMPLE_SHARE, STEPS_AFTER_SAMPLES = 10, 2**20, 0.25, 8
# A Newton step makes three passes: scores of the direction, the line search, the gradient.
NEWTON_PASSES = 3
# The interior-point method is expected to take this many steps (measured: 6 to 40); with one equation for each of at
# most this many rows, as such rows are mostly separable, fewer (measured: 5 to 16; 20 with 6,412 rows of text).
INTERIOR_STEPS, INTERIOR_ROW_STEPS, FEW_ROWS = 25, 10, 2048
# Passes of an interior-point step: right-hand sides, scores, and a conjugate-gradient step for each of two directions;
# with one equation a row, w and its scores.
INTERIOR_PASSES, INTERIOR_ROW_PASSES = 10, 2


class Size(NamedTuple):
    """The size of a data set: m rows of d features, the number of stored entries, and whether they are sparse."""

    m: int
    d: int
    entries: int
    sparse: bool

    @classmethod
    def of(cls, data: Dataset) -> "Size":
        """The size of a data set."""
        return cls(*data.shape, data.entries, data.sparse)


def visit(size: Size) -> float:
    """Operations of a visit of dual ascent to a row."""
    return ROW + size.entries / max(size.m, 1) * (SPARSE_ENTRY if size.sparse else 1.0)


def sweep(size: Size) -> float:
    """Operations of a sweep of dual ascent over all rows."""
    return SWEEP + size.m * visit(size)


def joint_visit(size: Size, count: int) -> float:
    """Operations, for each of `count` problems, of a visit to a row for all problems at once."""
    entry = JOINT_SPARSE_ENTRY if size.sparse else JOINT_ENTRY
    return ROW / count + JOINT_ROW + entry * size.entries / max(size.m, 1)


def joint_sweep(size: Size, count: int) -> float:
    """Operations, for each of `count` problems, of a sweep over all rows for all problems at once."""
    return SWEEP / count + size.m * joint_visit(size, count)


def one_pass(size: Size) -> float:
    """Operations of the scores of all rows, or of a combination of them."""
    return size.entries * (SPARSE_ENTRY if size.sparse else DENSE_PASS)


def squares(size: Size) -> float:
    """Operations of Σ h x xᵀ over all rows."""
    m, d = size[:2]
    dense = BLAS * m * float(d) * d
    if not size.sparse:
        return dense
    return min(dense, SCATTER * float(size.entries) ** 2 / max(m, 1))


def factorisation(n: int) -> float:
    """Operations of the Cholesky factorisation of a matrix of n rows."""
    return BLAS * float(n) ** 3 / 3.0


def products_of_rows(size: Size, n: int | None = None) -> float:
    """Operations of ⟨xᵢ, xⱼ⟩ for all pairs of rows, or of n of them."""
    m, d = size[:2]
    n = m if n is None else n
    if size.sparse:
        return SPARSE_ENTRY * n * n * size.entries / max(m, 1) / 2.0
    return BLAS * float(n) * n * d


def row_system(size: Size, n: int) -> float:
    """Operations of a system with one equation for each of n rows."""
    return products_of_rows(size, n) + factorisation(n)


def prefers_rows(size: Size) -> bool:
    """Whether a system with one equation a row costs less than one with one equation a feature."""
    m, d = size[:2]
    return m <= LARGEST_FACTOR and (d >= LARGEST_FACTOR or factorisation(m) < squares(size) + factorisation(d))


def interior_step(size: Size) -> float:
    """Operations of a step of the interior-point method: a factorisation, and the passes of two directions."""
    m, d = size[:2]
    if prefers_rows(size):
        return INTERIOR_STEP + factorisation(m) + INTERIOR_ROW_PASSES * one_pass(size)
    return INTERIOR_STEP + squares(size) + factorisation(d) + INTERIOR_PASSES * one_pass(size)


def interior_point(size: Size) -> float:
    """Expected operations of the interior-point method."""
    if prefers_rows(size):
        steps = INTERIOR_ROW_STEPS if size.m <= FEW_ROWS else INTERIOR_STEPS
        return products_of_rows(size) + steps * interior_step(size)
    return INTERIOR_STEPS * interior_step(size)


def kernel_machine(size: Size) -> float:
    """Expected operations of an exact kernel machine: half of all kernel values, once."""
    m, d = size[:2]
    value = KERNEL_ENTRY * d
    if size.sparse:  # rows with many entries are made dense
        value = min(value, KERNEL_SPARSE_ENTRY * size.entries / max(m, 1))
    return 0.5 * float(m) * m * (1.0 + value)


def newton(size: Size) -> float:
    """Expected operations of Newton's method: passes and a system in each step; Σ h x xᵀ is summed about twice."""
    m, d, *_ = size
    if min(m, d) > LARGEST_FACTOR:
        system = 2.0 * PRODUCTS * one_pass(size)
    elif m < d / 2:
        system = row_system(size, m)
    else:
        system = factorisation(d) + 2.0 / NEWTON_STEPS * squares(size)
    sampled = max(SAMPLE_ROWS * d, SAMPLE_ENTRIES // d) <= SAMPLE_SHARE * m
    steps = STEPS_AFTER_SAMPLES if sampled else NEWTON_STEPS
    return NEWTON_STEPS * NEWTON_STEP + steps * (system + NEWTON_PASSES * one_pass(size))
