"""Changes at random of what files hold: bytes, trees of plain values, arrays. The fuzzers of files share them."""

import copy

import numpy as np

NUMBERS = [0, 1, -1, 2, 7, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, -(2**63), 0.5, 1e-320,
           1e300, float("inf"), -float("inf"), float("nan"), True, False]  # fmt: skip
PLAIN = [None, "", "x", "auto", "rbf", "nan", "\ud800", "long" * 5000, [], {}, [[]], [1, 2], {"x": 1}, *NUMBERS]
DTYPES = ["?", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8"]


def pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def changed_bytes(rng, data, words):
    """Bytes with one place flipped, cut, doubled, or with a word put in, over what is there or beside it."""
    data = bytearray(data)
    at, kind = int(rng.integers(len(data) + 1)), rng.integers(5)
    if kind == 0 and data:
        data[at % len(data)] = rng.integers(256)
    elif kind == 1:
        del data[at : at + int(rng.integers(1, 40))]
    elif kind == 2:
        data[at:at] = data[at : at + int(rng.integers(1, 40))]
    else:
        word = pick(rng, words)
        data[at : at + (len(word) if kind == 3 else 0)] = word
    return bytes(data)


def places(tree):
    """(container, key) of every value in a tree."""
    found, left = [], [tree]
    while left:
        part = left.pop()
        inside = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in inside:
            found.append((part, key))
            if isinstance(value, dict | list):
                left.append(value)
    return found


def changed_tree(rng, tree, values):
    """A copy of a tree with one value replaced, moved, dropped, doubled or bent."""
    tree = copy.deepcopy(tree)
    spots = places(tree)
    if not spots:
        return tree
    part, key = pick(rng, spots)
    kind = rng.integers(8)
    leaves = [(part, key) for part, key in spots if not isinstance(part[key], dict | list | str)]
    if leaves and rng.random() < 0.5:  # numbers: a tree that keeps its shape is looked at more closely
        (part, key), kind = pick(rng, leaves), 6
    value = part[key]
    if kind <= 1:
        part[key] = copy.deepcopy(pick(rng, values))
    elif kind == 2:
        other, there = pick(rng, spots)
        part[key] = copy.deepcopy(other[there])
    elif kind == 3:
        del part[key]
    elif kind == 4 and isinstance(part, dict):
        _, name = pick(rng, spots)
        part[str(name) if rng.random() < 0.7 else "y"] = copy.deepcopy(value)
    elif kind == 5:
        part[key] = pick(rng, [[value], str(value), {"x": value}, [value, value]])
    elif isinstance(value, bool):
        part[key] = not value
    elif isinstance(value, int | float):
        part[key] = pick(
            rng, [value + 1, value - 1, -value, value * 1000, float(min(value, 1e300)), pick(rng, NUMBERS)]
        )
    else:
        part[key] = copy.deepcopy(pick(rng, values))
    return tree


def changed_array(rng, array):
    """An array of another dtype, shape or content."""
    array, kind = np.atleast_1d(array), rng.integers(5)
    with np.errstate(all="ignore"):
        if kind == 0:
            return array.astype(pick(rng, DTYPES))
        if kind == 1:
            return np.ascontiguousarray(pick(rng, [
                array.T, array.reshape(-1), array[None], array[..., None], array[:0], array[1:], array[..., :-1],
                np.concatenate([array, array]), array.reshape(-1)[:1].reshape(()) if array.size else array, array[::-1],
                np.zeros((0, 2**40), array.dtype),
            ]))  # fmt: skip
        changed = array.copy()
        flat = changed.reshape(-1)
        if not flat.size:
            return changed
        if kind == 2:
            flat[rng.integers(flat.size)] = pick(rng, _worst(changed.dtype))
        elif kind == 3:
            flat[rng.integers(flat.size)] += flat.dtype.type(1)
        else:
            flat[:] = np.frombuffer(rng.bytes(flat.nbytes), flat.dtype) if flat.dtype.kind != "b" else True
        return changed


def _worst(dtype):
    if dtype.kind == "f":
        return [np.nan, np.inf, -np.inf, 0.0, np.finfo(dtype).max, -1.0]
    if dtype.kind == "b":
        return [True, False]
    ends = np.iinfo(dtype)
    return [ends.min, ends.max, 0, 1, ends.max - 1, *([-1, -2] if dtype.kind == "i" else [])]
