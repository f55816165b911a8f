import scipy.sparse as sp
from benchopt import BaseDataset

from benchmarks.datasets import Split
from primalsvm.sources.generated import text_like


class Dataset(BaseDataset):
    """Text-like rows, as `primalsvm demo` trains on; small by default."""

    name = "simulated"
    parameters = {"rows": [20_000], "features": [5_000], "per_row": [50]}
    test_parameters = {"rows": [300], "features": [100], "per_row": [10]}

    def get_data(self):
        X, y, X_test, y_test = text_like(self.rows, self.features, self.per_row)  # the same in each repetition
        return {"split": Split(sp.csr_matrix(X), y, sp.csr_matrix(X_test), y_test)}
