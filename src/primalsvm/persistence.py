"""Model files: arrays in the safetensors format, with all else as JSON in its header.

    header   {"format": 1, "library": "0.1.0", "kind": "LinearSVC", "sha256": "…", "content": {…}}

`content` is a tree of plain values. Other values are tagged: {"array": name} is a tensor of the file, {"type": name,
"fields": …} an object of one of a set of known classes, and so on. Reading creates arrays and such objects, and never
runs code from the file. Truncated or modified files, and those of later versions, raise a ModelError. No array is used
twice and no value is larger than its representation in the file, so a small file cannot require much memory.

Writes are atomic. Checkpoints have the same format; as their parts change from version to version, the header also
holds the `schema` of the known parts.
"""

import dataclasses
import hashlib
import json
import os
import reprlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from primalsvm.atomic import atomic_write

FORMAT = 1
KEY = "primalsvm"
MODEL = "model file"  # its name in messages
DEEPEST = 50  # levels of a tree, so that a damaged file cannot exhaust the stack
LARGEST_STRINGS = 1 << 24  # bytes of an array of strings, each of which takes as much as the longest
LONGEST_REASON = 200  # characters of an error's message that are shown
HOMES = {  # where classes are registered, by an attribute of their objects
    "dual_step": "losses.registry.LOSSES",
    "advance": "solvers.registry.SOLVERS",
    "worth_evaluating": "solvers.registry.STATES",
    "build": "maps.registry.MAPS",
    "n_components": "maps.registry.MAPS",
}


class ModelError(ValueError):
    """A model that cannot be saved, or a file that is not a complete model."""


class Model(NamedTuple):
    """The contents of a model file."""

    kind: str
    content: dict[str, Any]
    library: str


# ---- trees -----------------------------------------------------------------------------------------------------------


class _Packer:
    """Turns objects into trees of plain values, and collects their arrays."""

    def __init__(self, known: Mapping[str, type], what: str) -> None:
        self.what = what
        self.names = {kind: name for name, kind in known.items()}
        self.arrays: dict[str, np.ndarray] = {}

    def pack(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic):
            return self.pack(value.item(), where)
        if isinstance(value, int | float):
            return value
        if type(value) in self.names:
            fields = {name: self.pack(one, f"{where}.{name}") for name, one in _fields(value).items()}
            return {"type": self.names[type(value)], "fields": fields}
        if isinstance(value, list) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
            packed = [self.pack(one, f"{where}.{k}") for k, one in enumerate(value)]
            return packed if isinstance(value, list) else {"tuple": packed}
        if isinstance(value, np.random.Generator):
            return {"generator": self.pack(value.bit_generator.state, where)}
        if isinstance(value, dict):
            pairs = [[self.pack(name, where), self.pack(one, f"{where}.{name}")] for name, one in value.items()]
            return {"pairs": pairs}
        if hasattr(value, "tocsr"):
            matrix = value.tocsr()
            names = ("data", "indices", "indptr")
            parts = {name: self.pack(getattr(matrix, name), f"{where}.{name}") for name in names}
            return {"csr": parts, "shape": list(matrix.shape)}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, where)
        homes = [home for method, home in HOMES.items() if hasattr(value, method)]
        advice = f": register its class in primalsvm.{homes[0]}" if homes and not isinstance(value, type) else ""
        raise ModelError(f"{where} = {value!r} cannot be saved in a {self.what}{advice}")

    def _pack_array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.names is not None:
            return {"table": {name: self.pack(value[name], f"{where}.{name}") for name in value.dtype.names}}
        if value.dtype.kind in "US" or value.dtype.kind == "O":
            return {"strings": [self.pack(one, where) for one in value.ravel().tolist()], "dtype": value.dtype.str}
        if value.dtype.kind not in "biuf":
            raise ModelError(f"{where}, an array of {value.dtype}, cannot be saved in a {self.what}")
        columns = value.ndim == 2 and value.flags.f_contiguous and not value.flags.c_contiguous
        self.arrays[where] = np.ascontiguousarray(value.T if columns else value)
        return {"transposed" if columns else "array": where}


def _fields(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    if hasattr(value, "get_params"):
        return dict(value.get_params(deep=False))
    return {"value": value.value}  # an enumeration


def _unpack(tree: Any, arrays: dict[str, np.ndarray], known: Mapping[str, type], depth: int = 0) -> Any:
    """Objects from a tree of plain values; each array is removed from `arrays` when it is used."""
    if depth > DEEPEST:
        raise ModelError("it is nested too deeply")
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree

    def inner(part: Any) -> Any:
        return _unpack(part, arrays, known, depth + 1)

    if isinstance(tree, list):
        return [inner(part) for part in tree]
    if "array" in tree:
        return arrays.pop(tree["array"])
    if "transposed" in tree:
        return arrays.pop(tree["transposed"]).T
    if "type" in tree:
        fields = {name: inner(part) for name, part in tree["fields"].items()}
        return known[tree["type"]](**fields)
    if "tuple" in tree:
        return tuple(inner(part) for part in tree["tuple"])
    if "generator" in tree:
        generator = np.random.default_rng(0)
        generator.bit_generator.state = inner(tree["generator"])
        return generator
    if "pairs" in tree:
        return {inner(name): inner(part) for name, part in tree["pairs"]}
    if "csr" in tree:
        parts = {name: inner(part) for name, part in tree["csr"].items()}
        matrix: Any = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(tree["shape"]))
        matrix.check_format(full_check=True)
        return matrix
    if "table" in tree:
        columns = {name: np.asarray(inner(part)) for name, part in tree["table"].items()}
        table = np.empty(len(next(iter(columns.values()))), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            table[name] = column
        return table
    if "strings" in tree:
        return _unpack_strings(tree["strings"], np.dtype(tree["dtype"]))
    raise ModelError("it has a part of an unknown kind")


def _unpack_strings(values: Any, dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind not in "UO" or not isinstance(values, list) or any(isinstance(one, list | dict) for one in values):
        raise ModelError("its strings are of another kind than they should be")
    if dtype.itemsize * len(values) > LARGEST_STRINGS and dtype.kind == "U":
        raise ModelError("its strings are too long")
    return np.array(values, dtype)


def _digest(content: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(content.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def check_known(values: Mapping[str, Any], known: Mapping[str, type], what: str = MODEL) -> None:
    """Raise a ModelError if files cannot hold one of these values."""
    packer = _Packer(known, what)
    for name, value in values.items():
        packer.pack(value, name)


# ---- files -----------------------------------------------------------------------------------------------------------


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    content: dict[str, Any],
    known: Mapping[str, type],
    library: str,
    schema: str = "",
    what: str = MODEL,
) -> None:
    """Write a model file atomically; a `schema` becomes part of the header."""
    from safetensors.numpy import save

    packer = _Packer(known, what)
    tree = {name: packer.pack(value, name) for name, value in content.items()}
    text = json.dumps(tree)
    digest = _digest(text, packer.arrays)
    header = {"format": FORMAT, "library": library, "kind": kind, "sha256": digest, "content": text}
    header |= {"schema": schema} if schema else {}
    atomic_write(Path(path), save(packer.arrays, {KEY: json.dumps(header)}))


def header_of(path: Path) -> dict[str, Any]:
    """The header of a model file; empty if the file is not one."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="np") as file:
            header = json.loads((file.metadata() or {})[KEY])
    except Exception:  # foreign bytes may raise anything: such a file is not a model file
        return {}
    return header if isinstance(header, dict) else {}


def schema_of(known: Mapping[str, type]) -> str:
    """A digest of the names of these classes and of their fields.

    Examples
    --------
    >>> from primalsvm.losses import Hinge, Huber
    >>> schema_of({"Hinge": Hinge}) == schema_of({"Huber": Huber})
    False
    """
    parts = []
    for name, kind in sorted(known.items()):
        own = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
        parts.append(f"{name}({', '.join(own or getattr(kind, '_fields', ()))})")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def read_model(
    path: str | os.PathLike[str], kinds: Collection[str], known: Mapping[str, type], what: str = MODEL
) -> Model:
    """Read a model file of one of these kinds.

    Raises
    ------
    ModelError
        If the file is not a model file, is damaged, or has a later version.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if path.is_dir():
        raise ModelError(f"{path} is a folder, not a {what}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    except (SafetensorError, ValueError, OSError, TypeError, AttributeError, KeyError) as error:
        raise ModelError(f"{path} is not a {what}, or is damaged: {reason(error)}") from None
    try:
        header = json.loads(metadata[KEY])
        version = header["format"]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ModelError(f"{path} is not a {what} of this library") from None
    if version != FORMAT:
        shown = reprlib.repr(version)
        raise ModelError(f"{path} has version {shown} of the model format; this library reads version {FORMAT}")
    kind = header.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise ModelError(f"{path} holds a {reprlib.repr(kind)}, where one of these is expected: {sorted(kinds)}")
    try:
        if header["sha256"] != _digest(header["content"], arrays):
            raise ModelError("its checksum is not what it says")
        tree = json.loads(header["content"])
        content = {name: _unpack(part, arrays, known) for name, part in tree.items()}
        return Model(kind, content, str(header["library"]))
    except Exception as error:  # invalid parts may raise anything
        raise ModelError(f"{path} is damaged: {reason(error)}") from None


def reason(error: Exception) -> str:
    """The message of an error about a damaged file, in one line of limited length."""
    said = " ".join(str(error).split()) or "no reason is given"
    if not isinstance(error, ModelError):
        said = f"{type(error).__name__}: {said}"
    return said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]} …"
