"""The benchmark's matrices, built once from `PRIMALSVM_DATA` and kept as .npz beside the other caches."""

import lzma
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class Split(NamedTuple):
    """Training and test rows with labels in {-1, +1}."""

    X_train: sp.csr_matrix
    y_train: np.ndarray
    X_test: sp.csr_matrix
    y_test: np.ndarray


def data_folder() -> Path:
    """The folder of raw data sets, named by the environment."""
    folder = os.environ.get("PRIMALSVM_DATA")
    if not folder:
        raise SystemExit("set PRIMALSVM_DATA to the folder that holds arxiv-abstracts/")
    return Path(folder)


def cache_folder() -> Path:
    """Where built matrices are kept between runs."""
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = root / "primalsvm-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def arxiv_text(shards: range) -> tuple[list[str], list[str]]:
    """Primary categories and texts (title and abstract) of the given shards."""
    categories, texts = [], []
    for k in shards:
        path = data_folder() / "arxiv-abstracts" / f"arxiv-{k:02d}.tsv.xz"
        with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
            for line in file:
                fields = line.rstrip("\n").split("\t")
                categories.append(fields[2])
                texts.append(fields[4] + " " + fields[5])
    return categories, texts


def rcv1(download: bool) -> Split | None:
    """RCV1, CCAT against the rest, with its large part to train on; None where it is not at hand."""
    from sklearn.datasets import fetch_rcv1

    try:
        parts = [fetch_rcv1(subset=subset, download_if_missing=download) for subset in ("test", "train")]
    except OSError:  # no file, and no network or none asked for
        return None
    made = []
    for part in parts:
        belongs = part.target[:, list(part.target_names).index("CCAT")].toarray().ravel() > 0
        made += [sp.csr_matrix(part.data, dtype=np.float32), np.where(belongs, 1.0, -1.0)]
    return Split(*made)


@cache
def arxiv(category: str = "cs") -> Split:
    """arXiv TF-IDF: min_df = 10, sublinear, float32; shards 00-04 train, 05 test; `category`.* against the rest."""
    cache = cache_folder() / "arxiv-tfidf"
    if not (cache / "done").exists():
        from sklearn.feature_extraction.text import TfidfVectorizer

        cache.mkdir(exist_ok=True)
        vectorizer = TfidfVectorizer(min_df=10, sublinear_tf=True, dtype=np.float32)
        for name, shards in (("train", range(5)), ("test", range(5, 6))):
            categories, texts = arxiv_text(shards)
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
