"""Real data sets, read from the folder that PRIMALSVM_DATA names."""

import bz2
import functools
import io
import lzma
import os
import tarfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file


def folder() -> Path | None:
    name = os.environ.get("PRIMALSVM_DATA")
    return Path(name) if name else None


def _svmlight(raw: bytes, n_features: int):
    X, y = load_svmlight_file(io.BytesIO(raw), n_features=n_features)
    return sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape), y


@functools.cache
def a9a():
    return _svmlight(lzma.open(folder() / "a9a" / "a9a.xz").read(), 123)


@functools.cache
def ijcnn1():
    return _svmlight(bz2.open(folder() / "ijcnn1" / "ijcnn1.trn.bz2").read(), 22)


@functools.cache
def covtype():
    """Standardised; class 1 against the rest."""
    with lzma.open(folder() / "covtype" / "covtype.csv.xz", "rt") as file:
        next(file)
        table = np.fromstring(file.read().replace("\n", ","), sep=",").reshape(-1, 55)
    X = table[:, :54]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.ascontiguousarray(X), np.where(table[:, 54] == 1, 1.0, -1.0)


@functools.cache
def newsgroups():
    """20news training messages as TF-IDF; the comp.* groups against the rest."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = [], []
    with tarfile.open(folder() / "20news-bydate" / "20news-bydate.tar.xz") as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            parts = Path(member.name).parts
            if member.isfile() and "20news-bydate-train" in parts and not member.name.endswith("54473-o"):
                texts.append(archive.extractfile(member).read().decode("latin-1"))
                labels.append(1.0 if parts[-2].startswith("comp.") else -1.0)
    X = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(texts)
    X.sort_indices()
    return sp.csr_matrix(X), np.array(labels)


@functools.cache
def housing():
    """House prices as they are, the rows without missing values, one column for each kind of place."""
    with lzma.open(folder() / "housing" / "housing.csv.xz", "rt") as file:
        names = next(file).strip().split(",")
        rows = [line.strip().split(",") for line in file]
    price, place = names.index("median_house_value"), names.index("ocean_proximity")
    rows = [row for row in rows if all(row)]
    places = sorted({row[place] for row in rows})
    numbers = [k for k in range(len(names)) if k not in (price, place)]
    X = [[*(float(row[k]) for k in numbers), *(float(row[place] == one) for one in places)] for row in rows]
    return np.array(X), np.array([float(row[price]) for row in rows])


@functools.cache
def lambdarank(part: str):
    """LightGBM's learning-to-rank example, "train" or "test": rows, relevances 0 … 4, queries."""
    with lzma.open(folder() / "lambdarank" / f"rank.{part}.xz") as file:
        X, y = load_svmlight_file(file, n_features=301, zero_based=True)
    sizes = np.loadtxt(folder() / "lambdarank" / f"rank.{part}.query", dtype=int)
    return X.toarray(), y, np.repeat(np.arange(len(sizes)), sizes)


def weights(m: int) -> np.ndarray:
    """Row weights between 0 and 3, some of them 0."""
    rng = np.random.default_rng(7)
    return np.where(rng.random(m) < 0.1, 0.0, 3.0 * rng.random(m))
