"""The benchmark's matrices, built once from `PRIMALSVM_DATA` and kept as .npz beside the other caches."""

import gzip
import lzma
import os
import tarfile
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class Split(NamedTuple):
    """Training and test rows with labels in {-1, +1}."""

    X_train: sp.csr_matrix
    y_train: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray


def raw(path: str) -> Path:
    """A file of raw data, in the folder that PRIMALSVM_DATA names."""
    folder = os.environ.get("PRIMALSVM_DATA")
    if not folder:
        raise FileNotFoundError(f"set PRIMALSVM_DATA to the folder that holds {path}")
    found = Path(folder) / path
    if not found.exists():
        raise FileNotFoundError(f"the folder that PRIMALSVM_DATA names holds no {path}")
    return found


def fetched(name: str, fetch: Callable[[], Any]) -> Any:
    """What a fetcher of scikit-learn's has kept or downloads."""
    try:
        return fetch()
    except OSError as error:  # no network, or no file where none may be downloaded
        raise FileNotFoundError(
            f"{name} is not in the folder that PRIMALSVM_DATA names and could not be fetched: {error}"
        ) from error


def cache_folder() -> Path:
    """Where built matrices are kept between runs."""
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = root / "primalsvm-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def arxiv_text(shards: range, rows: int | None = None) -> tuple[list[str], list[str]]:
    """Primary categories and texts (title and abstract) of the given shards, or of the first rows of each."""
    categories, texts = [], []
    for k in shards:
        with lzma.open(raw(f"arxiv-abstracts/arxiv-{k:02d}.tsv.xz"), "rt", encoding="utf-8", newline="") as file:
            for line in islice(file, rows):
                fields = line.rstrip("\n").split("\t")
                categories.append(fields[2])
                texts.append(fields[4] + " " + fields[5])
    return categories, texts


def rcv1(download: bool) -> Split:
    """RCV1, CCAT against the rest, with its large part to train on."""
    from sklearn.datasets import fetch_rcv1

    made: list[Any] = []
    for subset in ("test", "train"):
        part = fetched("RCV1", lambda subset=subset: fetch_rcv1(subset=subset, download_if_missing=download))
        belongs = part.target[:, list(part.target_names).index("CCAT")].toarray().ravel() > 0
        made += [sp.csr_matrix(part.data, dtype=np.float32), np.where(belongs, 1.0, -1.0)]
    return Split(*made)


def mnist(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n × 784, uint8) and digits of "train" or "t10k"."""
    try:
        with gzip.open(raw(f"mnist/{part}-images-idx3-ubyte.gz")) as file:
            images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
        with gzip.open(raw(f"mnist/{part}-labels-idx1-ubyte.gz")) as file:
            return images, np.frombuffer(file.read(), np.uint8, offset=8)
    except FileNotFoundError:
        from sklearn.datasets import fetch_openml

        images, labels = fetched("MNIST", lambda: fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False))
        rows = slice(0, 60_000) if part == "train" else slice(60_000, None)
        return images[rows].astype(np.uint8), labels[rows].astype(np.uint8)


def covtype() -> tuple[np.ndarray, np.ndarray]:
    """The table, unscaled (float32), and the classes 1 … 7."""
    try:
        with lzma.open(raw("covtype/covtype.csv.xz")) as file:
            table = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.float32)
        return table[:, :-1], table[:, -1]
    except FileNotFoundError:
        from sklearn.datasets import fetch_covtype

        X, y = fetched("covtype", lambda: fetch_covtype(return_X_y=True))
        return X.astype(np.float32), y


@cache
def arxiv(category: str = "cs", rows: int | None = None) -> Split:
    """arXiv TF-IDF: min_df = 10, sublinear, float32; shards 00-04 train, 05 test; `category`.* against the rest.

    `rows` of a shard to train on and to test on are for quick runs: building all takes a minute.
    """
    cache = cache_folder() / ("arxiv-tfidf" if rows is None else f"arxiv-tfidf-{rows}")
    if not (cache / "done").exists():
        from sklearn.feature_extraction.text import TfidfVectorizer

        cache.mkdir(exist_ok=True)
        vectorizer = TfidfVectorizer(min_df=10, sublinear_tf=True, dtype=np.float32)
        for name, shards in (("train", range(5 if rows is None else 1)), ("test", range(5, 6))):
            categories, texts = arxiv_text(shards, rows)
            X = vectorizer.fit_transform(texts) if name == "train" else vectorizer.transform(texts)
            X.sort_indices()
            sp.save_npz(cache / f"{name}.npz", X, compressed=False)
            np.save(cache / f"{name}-categories.npy", np.array(categories))
        (cache / "done").touch()
    parts = []
    for name in ("train", "test"):
        X = sp.csr_matrix(sp.load_npz(cache / f"{name}.npz"))
        labels = np.load(cache / f"{name}-categories.npy")
        belongs = (labels == category) | np.char.startswith(labels, category + ".")
        parts += [X, np.where(belongs, 1.0, -1.0)]
    return Split(*parts)


def lambdarank(part: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """LightGBM's learning-to-rank example, "train" or "test": rows, relevances 0 … 4, queries."""
    from primalsvm.sources.svmlight import read_svmlight

    rows = read_svmlight(raw(f"lambdarank/rank.{part}.xz"), n_features=301, zero_based=True)
    sizes = np.loadtxt(raw(f"lambdarank/rank.{part}.query"), dtype=int)
    return rows.X.toarray(), rows.y, np.repeat(np.arange(len(sizes)), sizes)


class Classes(NamedTuple):
    """Training and test rows of several classes."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def sector() -> Classes:
    """Web pages of companies, 105 sectors, TF-IDF of 55,197 words."""
    return _svmlight("sector/sector.scale.bz2", "sector/sector.t.scale.bz2", 55_197)


def letter() -> Classes:
    """26 letters by 16 numbers, dense."""
    X, y, X_test, y_test = _svmlight("letter/letter.scale.xz", "letter/letter.scale.t.xz", 16)
    return Classes(X.toarray(), y, X_test.toarray(), y_test)


def _svmlight(train: str, test: str, n_features: int) -> Classes:
    from primalsvm.sources.svmlight import read_svmlight

    parts: list[Any] = []
    for path in (train, test):
        rows = read_svmlight(raw(path), n_features=n_features, zero_based=False)
        X = sp.csr_matrix(rows.X)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # scikit-learn wants them
        parts += [X, np.asarray(rows.y)]
    return Classes(*parts)


def newsgroups() -> Classes:
    """20 newsgroups, cut by date, TF-IDF as scikit-learn's vectorizer makes it (single precision)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts: dict[str, list[str]] = {"train": [], "test": []}
    names: dict[str, list[str]] = {"train": [], "test": []}
    with tarfile.open(raw("20news-bydate/20news-bydate.tar.xz")) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                *_, part, name, _ = member.name.split("/")
                texts[part.rpartition("-")[2]].append(content.read().decode("latin-1"))
                names[part.rpartition("-")[2]].append(name)
    vectorizer = TfidfVectorizer(dtype=np.float32)
    X, X_test = vectorizer.fit_transform(texts["train"]), vectorizer.transform(texts["test"])
    return Classes(X, np.array(names["train"]), X_test, np.array(names["test"]))


def digits() -> Classes:
    """MNIST, values from 0 to 1 in single precision."""
    (X, y), (X_test, y_test) = mnist("train"), mnist("t10k")
    return Classes(X.astype(np.float32) / 255, y, X_test.astype(np.float32) / 255, y_test)


def housing() -> tuple[np.ndarray, np.ndarray]:
    """House prices (in 100,000): numbers standardised, missing ones the median, a column for each kind of place."""
    with lzma.open(raw("housing/housing.csv.xz"), "rt") as file:
        names, *lines = (line.rstrip("\n").split(",") for line in file)
    price, place = names.index("median_house_value"), names.index("ocean_proximity")
    numbers = [k for k in range(len(names)) if k not in (price, place)]
    table = np.array([[float(line[k]) if line[k] else np.nan for k in numbers] for line in lines])
    table = np.where(np.isnan(table), np.nanmedian(table, axis=0), table)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    kinds = np.array([line[place] for line in lines])
    one_hot = (kinds[:, None] == np.unique(kinds)).astype(float)
    return np.hstack([table, one_hot]), np.array([float(line[price]) for line in lines]) / 1e5
