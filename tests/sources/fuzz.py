"""Change the files of the corpus at random, and compare the compiled reader with the plain one.

    python -m tests.sources.fuzz [seconds]

Each round mutates a text (bytes flipped, cut, doubled, spliced with another, words of the format put in) and reads it,
cut into parts of different sizes. Both readers must refuse it, or give the same rows. Texts that are treated in a new
way (another sentence, another number of rows) join the corpus of the run.
"""

import sys
import time
from pathlib import Path

import numpy as np

from primalsvm.data import ThreadPool
from primalsvm.sources import svmlight
from primalsvm.sources.svmlight import Place, as_rows, parse_text
from primalsvm.sources.texts import FormatError
from tests.sources.plain_svmlight import RefusedError, plain_rows

CORPUS = Path(__file__).parent / "corpus"
WORDS = [b"1:1 ", b" ", b"\n", b"\r\n", b":", b"#", b"qid:", b"qid:12 ", b"-", b"+", b".", b"e", b"e-5", b"nan", b"inf",
         b"2147483646:", b"2147483647:", b"9223372036854775808:", b"1e308", b"1e309", b"4.9e-324", b"0" * 40, b"9" * 25,
         b"9007199254740993", b"\0", b"\xff", b"0:1 ", b"5:1 5:2 ", b"3:1 2:1 "]  # fmt: skip
LONGEST = 400


def mutated(rng, corpus):
    """A text from the corpus, changed in some places."""
    text = bytearray(corpus[rng.integers(len(corpus))])
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(text) + 1))
        kind = rng.integers(5)
        if kind == 0 and text:
            text[at % len(text)] = rng.integers(256)
        elif kind == 1:
            text[at:at] = WORDS[rng.integers(len(WORDS))]
        elif kind == 2:
            del text[at : at + int(rng.integers(1, 20))]
        elif kind == 3:
            other = corpus[rng.integers(len(corpus))]
            text[at:] = other[int(rng.integers(len(other) + 1)) :]
        else:
            text[at:at] = text[at : at + int(rng.integers(1, 40))]
    return bytes(text[:LONGEST])


def compare(text, part, threads):
    """Raise unless both readers agree; returns what they said, roughly."""
    try:
        expected = plain_rows(text)
    except RefusedError:
        expected = None
    svmlight.PART = part
    try:
        block = parse_text(np.frombuffer(text, np.uint8), Place("fuzz"), np.dtype(np.float64), threads)
        found = as_rows(block, "fuzz", None, True)
        said: object = (found.X.shape[0], int(found.X.nnz))
    except FormatError as error:
        found, said = None, str(error).partition(": ")[2][:20]
    assert (found is None) == (expected is None), (text, part, said, expected)
    if found is None:
        return said
    assert found.X.shape[0] == len(expected) and found.y.tolist() == [label for label, _, _ in expected], (text, part)
    queries = [query for _, query, _ in expected]
    assert (found.qid is None) == (not queries or queries[0] is None), (text, part)
    assert found.qid is None or found.qid.tolist() == queries, (text, part)
    for i, (_, _, entries) in enumerate(expected):
        a, b = found.X.indptr[i], found.X.indptr[i + 1]
        pairs = dict(zip(found.X.indices[a:b].tolist(), found.X.data[a:b].tolist(), strict=True))
        assert pairs == entries and len(pairs) == b - a, (text, part)
    return said


def fuzz(seconds, most=2**62, seed=0):
    """Run for so many seconds or texts; returns how many were compared, and how many ways they were treated."""
    rng = np.random.default_rng(seed)
    corpus = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
    seen, rounds, end = set(), 0, time.monotonic() + seconds
    with ThreadPool(1) as threads:
        for text in corpus:
            compare(text, 1 << 24, threads)
        while rounds < most and time.monotonic() < end:
            text = mutated(rng, corpus)
            said = compare(text, int(rng.choice([1, 7, 64, 1 << 24])), threads)
            if said not in seen and len(corpus) < 10_000:
                seen.add(said)
                corpus.append(text)
            rounds += 1
    return rounds, len(seen)


if __name__ == "__main__":
    rounds, ways = fuzz(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0, seed=time.time_ns() % 2**32)
    print(f"{rounds:,} texts, treated in {ways} ways: the two readers agree")
