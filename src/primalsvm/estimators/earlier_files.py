"""Model files of version 0.1.0, whose kernel machines had other names and units.

coef_        is `feature_coef_`
dual_coef_   is `landmark_coef_` of Nyström features; of an exact machine it was `coef_` once more
gamma_       was not stored
one-class    scores were divided by ν Σc; the files hold the number of rows, which is Σc without weights
"""

from typing import Any


def in_todays_terms(kind: str, parameters: dict[str, Any], learnt: dict[str, Any]) -> dict[str, Any]:
    """The fitted attributes of a model in today's names and units; those of today's files are returned as they are.

    Examples
    --------
    >>> old = {"feature_map_": None, "coef_": 2.0, "dual_coef_": 2.0}
    >>> in_todays_terms("SVC", {}, old)
    {'feature_map_': None, 'feature_coef_': 2.0}
    """
    if "feature_map_" not in learnt or "feature_coef_" in learnt:
        return learnt
    found = {name: value for name, value in learnt.items() if name not in ("coef_", "dual_coef_")}
    found["feature_coef_"] = learnt["coef_"]
    if "landmarks_" in learnt:
        found["landmark_coef_"] = learnt["dual_coef_"]
    if kind == "OneClassSVM":
        unit = parameters["nu"] * learnt["n_samples_fit_"]
        for name in {"feature_coef_", "landmark_coef_", "intercept_"} & set(found):
            found[name] = unit * found[name]
    gamma = getattr(getattr(learnt["feature_map_"], "kernel", None), "gamma", None)
    return found if gamma is None else found | {"gamma_": gamma}
