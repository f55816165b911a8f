"""Reading files, plain or compressed (.gz, .bz2, .xz, .zst). The path `-` is standard input."""

import bz2
import gzip
import io
import lzma
import mmap
import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from primalsvm.data import Vector

STANDARD_INPUT = Path("-")
SAMPLE = 1 << 22  # bytes from which properties of the whole text are estimated
PATIENCE = 1.0  # seconds to wait for more bytes of a pipe
PIECE = 1 << 17  # bytes that are decompressed at a time


class FormatError(ValueError):
    """An invalid file; the message names file, line and column."""


@contextmanager
def text_of(path: Path) -> Iterator[Vector]:
    """All bytes of a file, mapped into memory if it is not compressed."""
    if path != STANDARD_INPUT and decompressor(path) is None and path.stat().st_size:
        with path.open("rb") as file:
            try:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError):  # a pipe, or a file system without mapping
                yield np.frombuffer(file.read(), np.uint8)
            else:
                yield np.frombuffer(mapped, np.uint8)
        return
    with reader_of(path) as reader:
        yield np.frombuffer(reader.read(), np.uint8)


class TextReader:
    """Reads the text of a file sequentially; errors of decompression are raised as FormatError."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file = path, file

    def read(self, n: int = -1) -> bytes:
        """The next n bytes, or fewer at the end; by default all remaining ones."""
        try:
            content: bytes = self.file.read(n)
            return content
        except (MemoryError, ImportError, KeyboardInterrupt):
            raise
        except Exception as error:  # every library has its own errors
            raise FormatError(f"{self.path} is damaged, or not compressed as its name says: {error}") from None


class Pipe:
    """Reads from a pipe that may be slow: after a while it returns the bytes that have arrived, if fewer than n."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def read(self, n: int = -1) -> bytes:
        """The next n bytes, or those that arrive within `PATIENCE` seconds; none at the end."""
        try:
            descriptor = self.file.fileno()
        except (AttributeError, OSError):  # not a real pipe
            return bytes(self.file.read(n))
        if n < 0:
            return bytes(self.file.read())
        parts = [os.read(descriptor, n)]
        begin, size = time.monotonic(), len(parts[0])
        while parts[-1] and size < n:
            left = begin + PATIENCE - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                break
            parts.append(os.read(descriptor, n - size))
            size += len(parts[-1])
        return b"".join(parts)


@contextmanager
def reader_of(path: Path) -> Iterator[TextReader]:
    """Open a file for reading, decompressed."""
    if path == STANDARD_INPUT:
        yield TextReader(Path("standard input"), Pipe(sys.stdin.buffer))
        return
    with path.open("rb") as file:
        opener = decompressor(path)
        if opener is None:
            yield TextReader(path, file)
            return
        with opener(file) as plain:
            yield TextReader(path, plain)


def beginning(path: Path) -> tuple[bytes, float]:
    """The beginning of the text of a file, and the approximate ratio of the whole length to its length."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        opener = decompressor(path)
        with opener(file) if opener is not None else file as plain:
            text = TextReader(path, plain).read(SAMPLE)
            taken = min(file.tell(), size) if opener is not None else len(text)
    return text, size / max(taken, 1) if len(text) == SAMPLE else 1.0


def decompressor(path: Path) -> Any:
    """The function that opens a compressed file, from its suffix; None for plain files."""
    if path.suffix == ".gz":
        return lambda file: gzip.GzipFile(fileobj=file)
    if path.suffix == ".zst":
        return _zstd_reader
    return {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}.get(path.suffix)


def _zstd_reader(file: Any) -> Any:
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]  # optional
    except ImportError:
        raise ImportError("reading .zst files needs the package zstandard: pip install 'primalsvm[zstd]'") from None
    return _Zstd(file, zstandard.ZstdDecompressor)


class _Zstd(io.BufferedIOBase):
    """Reads a file of one or more frames; the package's own reader does not notice if a frame is truncated."""

    def __init__(self, file: Any, decompressor: Any) -> None:
        self.file, self.decompressor = file, decompressor
        self.frame: Any = None
        self.ready = bytearray()

    def readable(self) -> bool:
        """True, as `io` requires."""
        return True

    def read(self, n: int | None = -1, /) -> bytes:
        """The next n bytes, or fewer at the end; by default all remaining ones."""
        n = -1 if n is None else n
        while n < 0 or len(self.ready) < n:
            piece = self.file.read(PIECE)
            if not piece:
                if self.frame is not None:
                    raise EOFError("Compressed file ended before the end of its frame")
                break
            while piece:
                self.frame = self.frame or self.decompressor().decompressobj()
                self.ready += self.frame.decompress(piece)
                piece = self.frame.unused_data if self.frame.eof else b""
                self.frame = None if self.frame.eof else self.frame
        n = len(self.ready) if n < 0 else n
        taken = bytes(self.ready[:n])
        del self.ready[:n]
        return taken
