"""Data of the examples: real where PRIMALSVM_DATA names a folder that holds it, or else a stand-in of the same shape.

Nothing is downloaded. Every function says which it was, and takes `quick`, for fewer rows.
"""

import gzip
import lzma
import os
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split

import primalsvm


def real(path: str) -> Path | None:
    """A file of real data, if it is there."""
    folder = os.environ.get("PRIMALSVM_DATA")
    found = Path(folder) / path if folder else None
    if found is not None and found.exists():
        print(f"Data: real, {path}")
        return found
    print(f"Data: a stand-in (set PRIMALSVM_DATA to a folder with {path} for the real ones)")
    return None


class Parts(NamedTuple):
    """Rows to learn from, and rows to test on."""

    train: pd.DataFrame
    test: pd.DataFrame


def messages(quick: bool) -> Parts:
    """Messages, columns `text` and `group`: 20 newsgroups, the later messages for the test."""
    path = real("20news-bydate/20news-bydate.tar.xz")
    if path is None:
        return made_up_messages(3_000 if quick else 6_000)
    rows = []
    with tarfile.open(path) as archive:
        for member in archive:
            parts = Path(member.name).parts
            if member.isfile() and not member.name.endswith("54473-o"):  # a stray copy
                file = archive.extractfile(member)
                assert file is not None
                rows.append((parts[-3].endswith("train"), parts[-2], file.read().decode("latin-1")))
    table = pd.DataFrame(rows, columns=["early", "group", "text"])
    if quick:
        table = table[table.group.str.startswith("rec.")]
    return Parts(table[table.early], table[~table.early])


def made_up_messages(n: int) -> Parts:
    """Words of all topics by Zipf's law, and among them some of the message's own topic, or of another one."""
    rng = np.random.default_rng(0)
    topics = np.array(["astronomy", "baking", "chess", "cycling", "gardening", "hockey", "medicine", "sailing"])
    common = 1.0 / np.arange(10, 5_010)
    own = rng.integers(len(topics), size=n)
    texts = []
    for topic in own:
        words = [f"word{k}" for k in rng.choice(5_000, size=rng.poisson(60), p=common / common.sum())]
        about = np.where(rng.random(rng.poisson(7)) < 0.75, topic, rng.integers(len(topics)))
        words += [f"{topics[t]}{int(rng.exponential(40))}" for t in about]
        texts.append(" ".join(rng.permutation(words)))
    table = pd.DataFrame({"text": texts, "group": topics[own]})
    return Parts(table[: n * 2 // 3], table[n * 2 // 3 :])


def houses(quick: bool) -> pd.DataFrame:
    """Districts of California in 1990 (Pace and Barry 1997), and median prices in $, cut off at 500,001."""
    path = real("housing/housing.csv.xz")
    table = made_up_houses(20_000) if path is None else pd.read_csv(path).dropna()
    return table.sample(3_000 if quick else len(table), random_state=0)


def made_up_houses(n: int) -> pd.DataFrame:
    """Prices that grow with income and towards the coast, the dearer ones with a larger spread."""
    rng = np.random.default_rng(0)
    income = rng.gamma(4.0, 1.0, n)
    households = np.ceil(rng.lognormal(6.0, 0.7, n))
    rooms = households * rng.lognormal(1.6, 0.25, n)
    distance = rng.exponential(0.8, n)  # to the coast, in degrees
    latitude = rng.uniform(32.5, 42.0, n)
    place = np.select([distance < 0.15, distance < 0.8], ["NEAR OCEAN", "<1H OCEAN"], "INLAND")
    middle = 20_000 + 38_000 * income + 60_000 * np.exp(-distance) + 40_000 * (place == "NEAR OCEAN")
    return pd.DataFrame(
        {
            "longitude": -124.4 + 1.05 * (42.0 - latitude) + distance,
            "latitude": latitude,
            "housing_median_age": rng.integers(1, 53, n).astype(float),
            "total_rooms": rooms,
            "total_bedrooms": 0.2 * rooms,
            "population": households * rng.lognormal(1.0, 0.25, n),
            "households": households,
            "median_income": income,
            "median_house_value": middle * rng.lognormal(0.0, 0.25, n),
            "ocean_proximity": place,
        }
    )


class Judged(NamedTuple):
    """Documents that were judged for queries."""

    X: np.ndarray
    relevance: np.ndarray  # 0: useless … 4: just what was wanted
    query: np.ndarray


def judged_documents(quick: bool) -> tuple[Judged, Judged]:
    """To learn from, and of other queries to test on: LightGBM's example, 201 and 50 queries, 301 features."""
    path = real("lambdarank/rank.train.xz")
    if path is None:
        return made_up_documents(60 if quick else 300, seed=1), made_up_documents(40 if quick else 100, seed=2)
    parts = []
    for part in ("train", "test"):
        file = primalsvm.open(path.with_name(f"rank.{part}.xz"), n_features=301, zero_based=True)
        X, relevance = file.to_arrays()
        sizes = np.loadtxt(path.with_name(f"rank.{part}.query"), dtype=int)
        parts.append(ordered(Judged(X.toarray(), relevance, np.repeat(np.arange(len(sizes)), sizes))))
    return parts[0], parts[1]


def ordered(documents: Judged) -> Judged:
    """Without queries whose documents are all as relevant: there is no order to learn (`LinearRanker` would warn)."""
    levels = pd.Series(documents.relevance).groupby(documents.query).transform("nunique").to_numpy()
    return Judged(*(part[levels > 1] for part in documents))


def made_up_documents(queries: int, seed: int) -> Judged:
    """Of some queries all documents are good, of others none: what counts is the order within a query."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), rng.integers(8, 30, queries))
    luck = rng.normal(size=(queries, 40))[query]  # features that the documents of a query share,
    X = rng.normal(size=(len(query), 40)) + luck
    taste = np.random.default_rng(0).normal(size=40) / 6.0
    # … and which say nothing of the order: judges compare a query's documents with each other
    liking = (X - luck) @ taste + 0.7 * rng.normal(size=len(query)) + 1.5 * rng.normal(size=queries)[query]
    return ordered(Judged(X, np.digitize(liking, [0.0, 1.0, 2.0, 3.0]).astype(float), query))


class Digits(NamedTuple):
    """Images of digits, a row of grey values from 0 to 1 each, and what they show."""

    X: np.ndarray
    digit: np.ndarray
    X_test: np.ndarray
    digit_test: np.ndarray


def digits(quick: bool) -> Digits:
    """MNIST (28 × 28), or the small images (8 × 8) that come with scikit-learn."""
    path = real("mnist/train-images-idx3-ubyte.gz")
    if path is None:
        X, digit = load_digits(return_X_y=True)
        X, X_test, digit, digit_test = train_test_split(X.astype(np.float32) / 16, digit, random_state=0)
        return Digits(X, digit, X_test, digit_test)
    parts = []
    for part in ("train", "t10k"):
        images = gzip.decompress(path.with_name(f"{part}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress(path.with_name(f"{part}-labels-idx1-ubyte.gz").read_bytes())
        rows = slice(0, 5_000 if quick else None)
        parts.append(np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)[rows] / np.float32(255))
        parts.append(np.frombuffer(labels, np.uint8, offset=8)[rows])
    return Digits(*parts)


def papers(quick: bool) -> pd.DataFrame:
    """Papers in the order of their dates: `year`, `text`, and whether they are `computing`."""
    path = real("arxiv-abstracts/arxiv-05.tsv.xz")
    if path is None:
        return made_up_papers(6_000 if quick else 24_000)
    with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    rows = sorted(rows, key=lambda row: row[1])[:: 8 if quick else 1]
    date = pd.to_datetime([row[1] for row in rows])
    texts, computing = [f"{row[4]} {row[5]}" for row in rows], [row[2].startswith("cs.") for row in rows]
    return pd.DataFrame({"year": date.year + (date.month - 0.5) / 12, "text": texts, "computing": computing})


def made_up_papers(n: int) -> pd.DataFrame:
    """A field that grows from nothing to a third of all papers, and whose words change on the way."""
    rng = np.random.default_rng(0)
    age = np.sort(rng.power(2.5, n))  # from 0 to 1, ever more papers
    computing = rng.random(n) < 0.35 * age
    common = np.cumsum(1.0 / np.arange(10, 5_010))
    texts = []
    for now, one in zip(age, computing, strict=True):
        words = np.searchsorted(common, rng.random(60) * common[-1]).tolist()
        # the field's terms of the day are 100 of 300; others use them all now and then
        terms = (
            rng.integers(100, size=rng.poisson(6)) + int(200 * now) if one else rng.integers(300, size=rng.poisson(1))
        )
        texts.append(" ".join([f"word{k}" for k in words] + [f"term{k}" for k in terms]))
    return pd.DataFrame({"year": 1993 + 27 * age, "text": texts, "computing": computing})


def forest(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Plots of forest (covtype): 54 features of the place, and whether lodgepole pines grow there."""
    path = real("covtype/covtype.csv.xz")
    n = 3_000 if quick else 20_000
    if path is None:
        return make_classification(n, 20, n_informative=8, n_clusters_per_class=12, class_sep=1.5, random_state=0)
    with lzma.open(path, "rt") as file:
        lines = file.readlines()[1:]
    chosen = np.random.default_rng(0).permutation(len(lines))[:n]
    table = np.array([np.fromstring(lines[k], sep=",") for k in chosen])
    return table[:, :54], table[:, 54] == 2
