"""The estimators: the interface of scikit-learn."""
