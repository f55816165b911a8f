"""Tables as batches of plain Arrow columns: CSV text, Parquet, and Arrow IPC (Feather).

Columns of CSV files are returned as text without surrounding blanks, and null for missing values. `tables` decides from
the whole file what they hold; Arrow would decide from the first block, and fail later.
"""

import lzma
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from primalsvm.sources.texts import FormatError, beginning, decompressor

BLOCK = 1 << 22  # bytes of CSV text that are parsed at a time; no row may be longer
ROWS = 1 << 14  # of Parquet files that are decoded at a time
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
FORMATS = {".csv": "CSV", ".tsv": "CSV", ".parquet": "Parquet", ".arrow": "Arrow IPC", ".feather": "Arrow IPC"}
IPC_FILE = b"ARROW1"  # the first bytes of an IPC file; those of an IPC stream differ


def format_of(path: Path, delimiter: str | None = None) -> str:
    """The format of a table, from the suffix of its path; with a delimiter it is CSV.

    Examples
    --------
    >>> format_of(Path("rows.csv.gz"))
    'CSV'
    """
    if delimiter is not None:
        return "CSV"
    suffix = plain_suffix(path)
    found = FORMATS.get(suffix)
    if found is None or (found != "CSV" and path.suffix != suffix):
        raise FormatError(
            f"{path} does not look like a table: its suffix is none of {', '.join(FORMATS)}; give the delimiter if it "
            "is CSV text"
        )
    return found


def columns_of(path: Path, delimiter: str | None = None) -> dict[str, Any]:
    """The names of the columns of a table, and their Arrow types."""
    with _open_table(path, delimiter) as (schema, _):
        names = schema.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise FormatError(f"{path} has the column {twice!r} twice: give each column a name of its own")
        return dict(zip(names, schema.types, strict=True))


def batches_of(path: Path, names: Sequence[str], delimiter: str | None = None) -> Iterator[Any]:
    """Record batches of some columns of a table, in the order of the file.

    Dictionaries are decoded, and all text is of the type `large_string`.
    """
    with _open_table(path, delimiter) as (_, read):
        for batch in read(list(names)):
            yield _plain(batch)


def rows_about(path: Path, delimiter: str | None = None) -> int:
    """The approximate number of rows of a table."""
    if format_of(path, delimiter) == "Parquet":
        from pyarrow.parquet import read_metadata

        return int(read_metadata(path).num_rows)
    if format_of(path, delimiter) == "CSV":
        text, times = beginning(path)
        return int(times * text.count(b"\n"))
    names = list(columns_of(path, delimiter))
    return sum(batch.num_rows for batch in batches_of(path, names[:1], delimiter))


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text."""
    types = _pyarrow("tables").types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _plain(batch: Any) -> Any:
    pa = _pyarrow("tables")
    columns = []
    for column in batch.columns:
        values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        columns.append(values.cast(pa.large_string()) if is_text(values.type) else values)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def plain_suffix(path: Path) -> str:
    """The suffix of a path without that of a compression."""
    return Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"reading {what} needs the package pyarrow: pip install 'primalsvm[tables]'") from None
    return pyarrow


@contextmanager
def _open_table(path: Path, delimiter: str | None) -> Iterator[tuple[Any, Any]]:
    """The schema of a table, and a function that reads columns of it; Arrow's errors are raised as FormatError."""
    kind = format_of(path, delimiter)
    pa = _pyarrow(f"{kind} files")
    opener = {"CSV": _open_csv, "Parquet": _open_parquet, "Arrow IPC": _open_ipc}[kind]
    with ExitStack() as stack:
        try:
            yield opener(pa, path, delimiter, stack)
        except (pa.ArrowException, OSError, EOFError, *_decompression_errors()) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            raise FormatError(_sentence(path, kind, str(error))) from None


def _decompression_errors() -> tuple[type[Exception], ...]:
    zstd = sys.modules.get("zstandard")  # imported only if it is used
    return (lzma.LZMAError, zlib.error, *(() if zstd is None else (zstd.ZstdError,)))


def _open_csv(pa: Any, path: Path, delimiter: str | None, stack: ExitStack) -> tuple[Any, Any]:
    if delimiter is None:
        delimiter = "\t" if plain_suffix(path) == ".tsv" else ","
    csv = pa.csv
    opener = decompressor(path)
    missing = pa.array(csv.ConvertOptions().null_values, pa.string())

    def start(names: list[str] | None) -> Any:
        file = stack.enter_context(path.open("rb"))
        plain = file if opener is None else stack.enter_context(opener(file))
        kinds = {} if names is None else dict.fromkeys(names, pa.string())
        return stack.enter_context(
            csv.open_csv(
                plain,
                # with one thread Arrow's errors name the line; it is hardly slower
                read_options=csv.ReadOptions(block_size=BLOCK, use_threads=False),
                parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(column_types=kinds, include_columns=names or []),
            )
        )

    def tidy(column: Any) -> Any:
        trimmed = pa.compute.ascii_trim_whitespace(column)
        return pa.compute.if_else(pa.compute.is_in(trimmed, value_set=missing), None, trimmed)

    written = start(None).schema.names  # names may have surrounding blanks as well
    schema = pa.schema([(name.strip(), pa.string()) for name in written])

    def read(names: list[str]) -> Iterator[Any]:
        for batch in start([written[schema.names.index(name)] for name in names]):
            yield pa.RecordBatch.from_arrays([tidy(column) for column in batch.columns], names=names)

    return schema, read


def _open_parquet(pa: Any, path: Path, delimiter: str | None, stack: ExitStack) -> tuple[Any, Any]:
    file = stack.enter_context(pa.parquet.ParquetFile(path))
    return file.schema_arrow, lambda names: (
        batch.select(names) for batch in file.iter_batches(batch_size=ROWS, columns=names)
    )


def _open_ipc(pa: Any, path: Path, delimiter: str | None, stack: ExitStack) -> tuple[Any, Any]:
    with path.open("rb") as file:
        as_file = file.read(len(IPC_FILE)) == IPC_FILE
    source = stack.enter_context(pa.memory_map(str(path)))
    reader = stack.enter_context((pa.ipc.open_file if as_file else pa.ipc.open_stream)(source))

    def read(names: list[str]) -> Iterator[Any]:
        for batch in (reader.get_batch(k) for k in range(reader.num_record_batches)) if as_file else reader:
            chosen = batch.select(names)
            chosen.validate(full=True)  # offsets and indices in the file may be invalid
            yield chosen

    return reader.schema, read


def _sentence(path: Path, kind: str, message: str) -> str:
    ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
    if ragged:
        where = f", line {ragged[1]}" if ragged[1] else ""
        return f"{path}{where}: expected {ragged[2]} columns, as the header names, but found {ragged[3]}"
    if "Empty CSV" in message:
        return f"{path} is empty: a table begins with a line that names its columns"
    if "straddling" in message:
        return f"{path} has a row of more than {BLOCK >> 20} MB: is the delimiter right, and is every quote closed?"
    first = message.strip().splitlines()[0] if message.strip() else "it ends too early"
    return f"{path} cannot be read as {kind}: {first}"
