"""Trees of plain values, arrays and known objects: what is written comes back."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from primalsvm.persistence import ModelError, header_of, read_model, schema_of, write_model
from primalsvm.solution import TRACE_DTYPE, Status, Trace


class Pair(NamedTuple):
    """Two values."""

    first: Any
    second: Any = None


@dataclass
class Derived:
    """One field is made from the other."""

    given: Any
    length: int = field(init=False)

    def __post_init__(self):
        self.length = len(self.given)


KNOWN = {"Pair": Pair, "Derived": Derived, "Trace": Trace, "Status": Status}


def there_and_back(path, value, known=KNOWN):
    write_model(path / "file", "thing", {"value": value}, known, "0.0")
    return read_model(path / "file", ("thing",), known).content["value"]


@pytest.mark.parametrize(
    "value",
    [
        None, True, 2**100, -0.1, 1e-320, "text", [1, [2, "x"]], (1, (2, None)), {"a": 1, 3: (4,)}, Status.STALLED,
        Pair(1, Pair("x", [2.0])), Derived([1, 2, 3]), np.float64(0.1), np.int32(7), {},
    ],
    ids=repr,
)  # fmt: skip
def test_values_come_back(tmp_path, value):
    assert there_and_back(tmp_path, value) == value


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_json_does_not_know(tmp_path, value):
    np.testing.assert_equal(there_and_back(tmp_path, value), value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint64, np.uint8, np.bool_])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0,), (5,), (4, 3), (1, 1), (3, 0)])
def test_arrays_come_back_in_their_order(tmp_path, dtype, order, shape):
    array = np.asarray(np.random.default_rng(0).integers(0, 2, shape).astype(dtype), order=order)
    found = there_and_back(tmp_path, array)
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.c_contiguous == array.flags.c_contiguous
    assert found.flags.f_contiguous == array.flags.f_contiguous


def test_generators_go_on_where_they_were(tmp_path):
    rng = np.random.default_rng(0)
    rng.integers(10, size=3, dtype=np.uint32)
    found = there_and_back(tmp_path, rng)
    assert found.random() == rng.random() and found.integers(100) == rng.integers(100)


@pytest.mark.parametrize("rows", [0, 3])
def test_traces_come_back(tmp_path, rows):
    trace = Trace()
    for k in range(rows):
        trace.append(float(k), 10 * k, 0.1, 0.5, np.nan, 0.25, "newton")
    found = there_and_back(tmp_path, trace).array()
    assert found.dtype == TRACE_DTYPE
    assert found.tobytes() == trace.array().tobytes()


class Unknown(NamedTuple):
    """A class that is not registered."""

    value: int


@pytest.mark.parametrize(
    "value", [object(), Unknown(1), 1j, np.array([1j]), {1, 2}], ids=lambda value: type(value).__name__
)
def test_what_is_not_known_is_refused(tmp_path, value):
    with pytest.raises(ModelError, match=r"value\.0\S* = .*cannot be saved|value\.0, an array of complex128, cannot"):
        there_and_back(tmp_path, [value])
    assert list(tmp_path.iterdir()) == []


def test_headers(tmp_path):
    write_model(tmp_path / "file", "thing", {}, {}, "1.2", schema="abc")
    header = header_of(tmp_path / "file")
    assert (header["kind"], header["library"], header["schema"]) == ("thing", "1.2", "abc")
    write_model(tmp_path / "file", "thing", {}, {}, "1.2")
    assert "schema" not in header_of(tmp_path / "file")
    (tmp_path / "other").write_text("dear diary")
    assert header_of(tmp_path / "other") == {} == header_of(tmp_path / "none")


def test_schemas_tell_names_and_fields_apart():
    class Longer(NamedTuple):
        """One more field."""

        first: Any
        second: Any = None
        third: Any = None

    schemas = {schema_of(known) for known in ({}, {"Pair": Pair}, {"Pair": Longer}, {"Two": Pair}, KNOWN)}
    assert len(schemas) == 5
    assert schema_of({"Pair": Pair, "Status": Status}) == schema_of({"Status": Status, "Pair": Pair})
