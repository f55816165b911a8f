"""Classes as indices, and indices as signs of one-vs-rest problems."""

from typing import Any

import numpy as np
import numpy.typing as npt


def label_codes(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The sorted classes and the index of the class of each row: `np.unique`, without sorting for two numbers.

    Examples
    --------
    >>> label_codes(np.array([3, 1, 3]))
    (array([1, 3]), array([1, 0, 1]))
    """
    if y.dtype.kind in "iuf" and y.size > 0:
        low, high = y.min(), y.max()
        upper = y == high
        if low < high and np.all(upper | (y == low)):
            return np.array([low, high]), upper.astype(np.intp)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def class_signs(codes: npt.NDArray[np.intp], n_classes: int) -> npt.NDArray[Any]:
    """±1 for each row and problem: one column for two classes, else one for each class against the rest.

    The code of a row without a class is −1.

    Examples
    --------
    >>> class_signs(np.array([0, 1]), 2), class_signs(np.array([0, 2, 1]), 3)[:, 2]
    (array([[-1.],
           [ 1.]]), array([-1,  1, -1], dtype=int8))
    """
    if n_classes == 2:
        return as_signs(codes[:, None] == 1)
    signs = np.empty((codes.shape[0], n_classes), np.int8, order="F")
    for k in range(n_classes):
        np.subtract(2 * (codes == k).view(np.int8), 1, out=signs[:, k])
    return signs


def as_signs(present: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """+1 if a row has a label and −1 if not, in a column for each label; float64 if there is only one.

    Examples
    --------
    >>> as_signs(np.array([[True, False], [True, True]]))
    array([[ 1, -1],
           [ 1,  1]], dtype=int8)
    """
    return np.asfortranarray(np.where(present, 1, -1), np.float64 if present.shape[1] == 1 else np.int8)
