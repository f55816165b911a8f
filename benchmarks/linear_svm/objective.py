import numpy as np
from benchopt import BaseObjective

from benchmarks.common import LAMBDAS, error_rate, hinge_objective


class Objective(BaseObjective):
    """λ/2 ‖w‖² + mean max(0, 1 − y ⟨w, x⟩), no intercept."""

    name = "Linear SVM"
    min_benchopt_version = "1.10"
    parameters = {"lam": list(LAMBDAS)}

    def skip(self, split):
        return split is None, "set PRIMALSVM_DATA to a folder that holds it"

    def set_data(self, split):
        self.split = split
        self.X64, self.X64_test = (X.astype(np.float64) for X in (split.X_train, split.X_test))

    def get_objective(self):
        return {"X": self.split.X_train, "y": self.split.y_train, "lam": self.lam}

    def evaluate_result(self, w):
        return {
            "value": hinge_objective(self.X64, self.split.y_train, w, self.lam),
            "test_error": error_rate(self.X64_test, self.split.y_test, w),
        }

    def get_one_result(self):
        return {"w": np.zeros(self.X64.shape[1])}

    def save_final_results(self, w):  # so that a result file can be checked by whoever has the data
        return {"w": w}
