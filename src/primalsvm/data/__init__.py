"""Rows: blocks that compiled kernels read, and data sets that know where their rows are.

Code outside this package uses these names only, and does not depend on a particular kind of block or data set.
"""

from primalsvm.data.blocks import (
    EQUAL_WEIGHTS,
    Batch,
    Block,
    Vector,
    Weights,
    add,
    dot,
    inner,
    prefetch,
    prefetch_pointer,
    prefetch_row,
    squared_norm,
    squared_norms_of,
    weight_of,
)
from primalsvm.data.csr import CSR, crc, unsigned
from primalsvm.data.dataset import Dataset, Handle
from primalsvm.data.dense import Dense
from primalsvm.data.in_memory import InMemory
from primalsvm.data.inputs import (
    as_block,
    as_dataset,
    as_multiplicity,
    as_numbers,
    as_targets,
    as_weights,
    check_columns,
    is_block,
)
from primalsvm.data.kernel_matrix import KernelMatrix, add_kernel_scores
from primalsvm.data.local import LocalDataset
from primalsvm.data.mapped import FeatureMap, Mapped
from primalsvm.data.out_of_core import OutOfCore, Reader
from primalsvm.data.pairs import Pairs
from primalsvm.data.threads import ALONE, ThreadPool, thread_count, thread_pool
from primalsvm.data.whitened import Whitened

__all__ = [
    "ALONE",
    "CSR",
    "EQUAL_WEIGHTS",
    "Batch",
    "Block",
    "Dataset",
    "Dense",
    "FeatureMap",
    "Handle",
    "InMemory",
    "KernelMatrix",
    "LocalDataset",
    "Mapped",
    "OutOfCore",
    "Pairs",
    "Reader",
    "ThreadPool",
    "Vector",
    "Weights",
    "Whitened",
    "add",
    "add_kernel_scores",
    "as_block",
    "as_dataset",
    "as_multiplicity",
    "as_numbers",
    "as_targets",
    "as_weights",
    "check_columns",
    "crc",
    "dot",
    "inner",
    "is_block",
    "prefetch",
    "prefetch_pointer",
    "prefetch_row",
    "squared_norm",
    "squared_norms_of",
    "thread_count",
    "thread_pool",
    "unsigned",
    "weight_of",
]
