"""NumPy and SciPy files, against the arrays that were written."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm.sources.arrays import ArrayFile
from primalsvm.sources.texts import FormatError

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(30, 4))
SPARSE = sp.random(30, 7, 0.3, format="csr", random_state=0)
LABELS = np.where(TABLE[:, 0] > 0, "yes", "no")


def write_sparse(path, X, **more):
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, format=X.format.encode(), **more)


def whole(blocks):
    matrices, labels = zip(*blocks, strict=True)
    return (sp.vstack(matrices).toarray() if sp.issparse(matrices[0]) else np.concatenate(matrices)), np.concatenate(
        labels
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("target", [0, 2, 3, -1, -4])
def test_a_matrix_with_a_column_of_labels(tmp_path, target, order):
    np.save(tmp_path / "rows.npy", np.asarray(TABLE, np.float32, order=order))
    source = ArrayFile(tmp_path / "rows.npy", target=target)
    X, y = source.to_arrays()
    rest = [j for j in range(4) if j != target % 4]
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, TABLE[:, rest].astype(np.float32), strict=True)
    np.testing.assert_array_equal(y, TABLE[:, target].astype(np.float32), strict=True)
    blocks = list(source.blocks(7 * 16))
    assert len(blocks) == math.ceil(30 / 7)
    for found, expected in zip(whole(blocks), (X, y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_dense_matrix_and_labels(tmp_path):
    np.savez(tmp_path / "rows.npz", X=TABLE, y=LABELS)
    for X, y in (ArrayFile(tmp_path / "rows.npz").to_arrays(), whole(ArrayFile(tmp_path / "rows.npz").blocks(100))):
        np.testing.assert_array_equal(X, TABLE, strict=True)
        np.testing.assert_array_equal(y, LABELS, strict=True)


def test_a_sparse_matrix_and_labels(tmp_path):
    write_sparse(tmp_path / "rows.npz", SPARSE, y=LABELS)
    X, y = ArrayFile(tmp_path / "rows.npz").to_arrays()
    assert X.format == "csr" and (X != SPARSE).nnz == 0 and (y == LABELS).all()
    blocks = list(ArrayFile(tmp_path / "rows.npz").blocks(100))
    assert len(blocks) > 5
    np.testing.assert_array_equal(whole(blocks)[0], SPARSE.toarray())
    np.testing.assert_array_equal(whole(blocks)[1], LABELS)


def with_nan(array, *place):
    array = array.copy()
    array[place] = np.nan
    return array


@pytest.mark.parametrize(
    ("array", "target", "message"),
    [
        (TABLE, None, r"say which column is the target: .*rows.npy has the columns 0 to 3"),
        (TABLE, 4, r"has no column 4 for the target; it has 0 to 3"),
        (TABLE, -5, r"has no column -5"),
        (TABLE[:, :1], 0, r"no features"),
        (TABLE[0], 0, r"must hold a matrix of numbers; it is float64 of \(4,\)"),
        (TABLE.astype(str), 0, r"must hold a matrix of numbers"),
        (TABLE[:0], 0, r"is empty: 0 rows and 4 columns"),
        (with_nan(TABLE, 20, 2), 0, r"row 21, column 2: the value is missing or infinite"),
    ],
)
def test_refusals_of_a_matrix(tmp_path, array, target, message):
    np.save(tmp_path / "rows.npy", array)
    with pytest.raises(FormatError, match=message):
        list(ArrayFile(tmp_path / "rows.npy", target=target).blocks(32))


def sparse_parts(**changed):
    parts = {
        "data": SPARSE.data,
        "indices": SPARSE.indices,
        "indptr": SPARSE.indptr,
        "shape": SPARSE.shape,
        "y": LABELS,
    }
    return parts | changed


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": TABLE}, r"must hold the arrays 'X' and 'y', or .*; it holds X$"),
        ({"y": LABELS}, r"must hold the arrays"),
        ({"X": TABLE, "y": LABELS[:5]}, r"y must hold 30 labels, one a row; it is <U3 of \(5,\)"),
        ({"X": TABLE, "y": with_nan(TABLE[:, 0], 3)}, r"row 4: y is missing or infinite"),
        ({"X": with_nan(TABLE, 3, 1), "y": LABELS}, r"row 4, column 1: the value is missing"),
        ({"X": np.array([[None]]), "y": LABELS}, r"cannot be read as a NumPy file: .*pickle"),
        (sparse_parts(indices=SPARSE.indices + 7), r"cannot be read as a NumPy file: "),
        (sparse_parts(indptr=SPARSE.indptr[::-1]), r"cannot be read as a NumPy file: "),
        (sparse_parts(indices=SPARSE.indices * 1.0), r"cannot be read as a NumPy file: its indices"),
        (sparse_parts(data=SPARSE.data.astype(str)), r"cannot be read as a NumPy file: its values are no numbers"),
        (sparse_parts(shape=[30]), r"cannot be read as a NumPy file: "),
        (sparse_parts(shape=[-30, 7]), r"cannot be read as a NumPy file: "),
        (sparse_parts(format=b"csc"), r"stored as b'csc', not as 'csr'"),
    ],
)
def test_refusals_of_an_archive(tmp_path, arrays, message):
    np.savez(tmp_path / "rows.npz", **arrays)
    with pytest.raises(FormatError, match=message):
        ArrayFile(tmp_path / "rows.npz").to_arrays()


def test_the_place_of_a_missing_value_in_a_sparse_matrix(tmp_path):
    X = SPARSE.copy()
    X.data[20] = np.inf
    row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(X.toarray())))
    write_sparse(tmp_path / "rows.npz", X, y=LABELS)
    with pytest.raises(FormatError, match=f"row {row + 1}, column {column}: the value is missing or infinite"):
        ArrayFile(tmp_path / "rows.npz").to_arrays()


@pytest.mark.parametrize("name", ["rows.npy", "rows.npz"])
def test_what_is_not_of_numpy(tmp_path, name):
    target = 0 if name == "rows.npy" else None
    np.savez(tmp_path / "whole.npz", X=TABLE, y=LABELS)
    archive = (tmp_path / "whole.npz").read_bytes()
    for content in (b"", b"nothing of the kind", pickle.dumps([1]), archive[:500]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=f"{name} cannot be read as a NumPy file"):
            ArrayFile(tmp_path / name, target=target).to_arrays()
    with pytest.raises(FileNotFoundError):
        ArrayFile(tmp_path / f"no {name}", target=target).to_arrays()


def test_suffixes_and_options(tmp_path):
    np.save(tmp_path / "rows.npy", TABLE)
    (tmp_path / "rows.npy").rename(tmp_path / "matrix.npz")
    with pytest.raises(FormatError, match=r"is a single array: call it \.npy"):
        ArrayFile(tmp_path / "matrix.npz").to_arrays()
    np.savez(tmp_path / "rows.npz", X=TABLE, y=LABELS)
    with pytest.raises(FormatError, match="are its array 'y': a target must not be given"):
        ArrayFile(tmp_path / "rows.npz", target=0).to_arrays()
    with pytest.raises(TypeError, match="the number of a column"):
        ArrayFile(tmp_path / "rows.npy", target="label")
