"""The bytes of files, whatever they are compressed with."""

import bz2
import gzip
import io
import lzma
import sys
from pathlib import Path

import pytest
import zstandard

from primalsvm.sources.texts import STANDARD_INPUT, FormatError, beginning, reader_of, text_of

TEXT = b"".join(b"%d 1:%d 2:0.5\n" % (i % 2, i * 7919 % 1000) for i in range(400_000))
KINDS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_it_and_in_parts(tmp_path, kind):
    path = tmp_path / f"rows{kind}"
    path.write_bytes(KINDS[kind](TEXT))
    with text_of(path) as text:
        assert bytes(text) == TEXT
    with reader_of(path) as reader:
        parts = iter(lambda: reader.read(1_000_003), b"")
        assert b"".join(parts) == TEXT
    text, times = beginning(path)
    assert TEXT.startswith(text) and times * len(text) == pytest.approx(len(TEXT), rel=0.25)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind])
def test_a_damaged_file_is_named(tmp_path, kind):
    path = tmp_path / f"rows{kind}"
    whole = KINDS[kind](TEXT)
    for damaged in (b"1 1:1\n", whole[:1000] + b"x" * 1000, whole[:-3], whole[: len(whole) // 2], whole[:12]):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"rows.* is damaged, or not compressed as its name says"), text_of(path):
            pass


def test_two_files_after_one_another(tmp_path):
    for kind, compress in KINDS.items():
        (tmp_path / f"rows{kind}").write_bytes(compress(TEXT) + compress(b"1 1:1\n"))
        with text_of(tmp_path / f"rows{kind}") as text:
            assert bytes(text) == TEXT + b"1 1:1\n"


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    with text_of(STANDARD_INPUT) as text:
        assert bytes(text) == TEXT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    with reader_of(Path("-")) as reader:
        assert reader.read(10) == TEXT[:10]


def test_an_empty_file(tmp_path):
    (tmp_path / "rows").write_bytes(b"")
    with text_of(tmp_path / "rows") as text:
        assert text.shape == (0,)
    assert beginning(tmp_path / "rows") == (b"", 1.0)
