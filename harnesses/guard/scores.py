"""A guard's reports with their labels, checked row by row, and their reader; imports region, numpy and pyarrow.

Rows are data rows and count from 1: the header is no row, and neither is a blank line. Where a CSV file is at
fault the line of the file is named beside the row, because an editor counts lines.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from harnesses.guard.region import GuardError

COLUMNS = ("p", "y", "p_injected", "group")
"""The columns that are read; others are passed over."""

Place = Callable[[int], str]
"""From a row, counted from 0, to the words that name it in an error."""

_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
_PARQUET = b"PAR1"


@dataclass(frozen=True, eq=False)
class Scores:
    """Reports and labels of N >= 1 items, in the order given.

    `p` float64 `[N]` in [0, 1]: the reported probability that the call is allowed. `y` int8 `[N]`: 1 allowed,
    0 not. `p_injected` float64 `[N]`: the report on the same item with the injected document added. `group`
    object `[N]` of text. Numbers, booleans and text are accepted and converted; a float16 or float32 becomes the
    float64 of its shortest decimal, so that 0.7 stays 0.7. Raises GuardError naming the first row that is wrong.
    """

    p: Any
    y: Any
    p_injected: Any = None
    group: Any = None
    source: str = "scores"

    def __post_init__(self) -> None:
        place = rows_of(self.source)
        sizes = {}
        for column, reader in _READERS.items():
            values = getattr(self, column)
            if values is not None:
                found = reader(_vector(values, column, self.source), column, place)
                found.flags.writeable = False
                object.__setattr__(self, column, found)
                sizes[column] = found.size
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{column} has {size}" for column, size in sizes.items())
            raise GuardError(f"{self.source}: {told} rows; give every item one value of each")
        if self.size == 0:
            raise GuardError(f"{self.source} has no rows; give at least one item, such as p 0.97, y 1")

    @classmethod
    def of(cls, p: Any, y: Any, p_injected: Any = None, group: Any = None, source: str = "scores") -> Scores:
        """Scores from sequences or arrays of numbers, booleans or text. Raises GuardError naming the first bad row."""
        return cls(p, y, p_injected, group, source)

    @property
    def size(self) -> int:
        """Number of items N."""
        return len(self.p)

    @property
    def allowed(self) -> np.ndarray:
        """Mask bool `[N]`: the items whose label says that the call is allowed."""
        return self.y == 1

    def require_both_classes(self) -> None:
        """Raise GuardError unless there are allowed and disallowed items: rates among each need both."""
        first = int(self.y[0])
        if (self.y == first).all():
            word = "allowed" if first else "not allowed"
            raise GuardError(
                f"{self.source}: rows 1 to {self.size} all have y = {first} ({word}), a single class; give at "
                f"least one row with y = {1 - first}"
            )

    def where(self, mask: np.ndarray, source: str | None = None) -> Scores:
        """The items where `mask` bool `[N]` holds, in the same order. Raises GuardError where none does."""
        return Scores(
            self.p[mask],
            self.y[mask],
            None if self.p_injected is None else self.p_injected[mask],
            None if self.group is None else self.group[mask],
            self.source if source is None else source,
        )


def read_scores(path: str | PathLike[str], need: Sequence[str] = ("p", "y")) -> Scores:
    """Scores of a CSV file (UTF-8, comma-separated, with a header) or a Parquet file, told apart by content.

    Columns `p` and `y`, and where present `p_injected` and `group`; `need` names those that must be there. Labels
    are 0, 1, true, false, 0.0 or 1.0. Raises OSError where the file cannot be read and GuardError, naming the
    first bad row and its column, where its content is no scores.
    """
    source = fspath(path)
    raw = Path(source).read_bytes()
    if raw[:4] == _PARQUET:
        return Scores(**_parquet_columns(raw, source, need), source=source)
    if source.lower().endswith((".parquet", ".pq")):
        raise GuardError(
            f"{source} is no Parquet file, as its name says; write one with DataFrame.to_parquet"
        )
    return Scores(**_csv_columns(raw, source, need), source=source)


def _csv_columns(raw: bytes, source: str, need: Sequence[str]) -> dict[str, np.ndarray]:
    """The known columns of a CSV file, converted."""
    text = _decoded(raw, source)
    records = _records(text, source)
    if not records:
        raise GuardError(f"{source} is empty; its first line names the columns, such as p,y")
    header, rows = [name.strip() for name in records[0]], records[1:]
    chosen = positions(header, source, need)

    def place(row: int) -> str:
        return f"{source} row {row + 1} (line {_line(text, row + 1)})"

    if set(map(len, rows)) - {len(header)}:
        bad = next(i for i, row in enumerate(rows) if len(row) != len(header))
        raise GuardError(
            f"{place(bad)} has {len(rows[bad])} fields, where the header names {len(header)} columns"
        )
    if not rows:
        raise GuardError(f"{source} has a header and no rows; give at least one item, such as 0.97,1")
    return {name: _READERS[name](list(map(itemgetter(i), rows)), name, place) for name, i in chosen.items()}


def _decoded(raw: bytes, source: str) -> str:
    """The text of the file without its byte-order mark."""
    raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8") + "?"
        row = sum(1 for _ in _nonblank(csv.reader(io.StringIO(before, newline="")))) - 1
        where = f"row {row}" if row else "the header"
        raise GuardError(
            f"{source} {where} (line {before.count(chr(10)) + 1}): byte 0x{raw[error.start]:02x} is not UTF-8; "
            "save the file as CSV in UTF-8"
        ) from error
    if "\0" in text:
        raise GuardError(
            f"{source} holds bytes of value 0 and is neither CSV nor Parquet; save it as CSV in UTF-8"
        )
    return text


def _records(text: str, source: str) -> list[tuple[str, ...]]:
    """The records of a CSV text, header first, blank lines left out."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        # Tuples of text leave the garbage collector's lists, which halves the time.
        found = list(map(tuple, reader))
    except csv.Error as error:
        long = "larger than field limit" in str(error)
        remedy = "drop that column or give Parquet" if long else "write a row as 0.97,1 and double a quote"
        raise GuardError(f"{source} line {reader.line_num} is not CSV: {error}; {remedy}") from error
    return found if min(map(len, found), default=2) > 1 else list(_nonblank(found))


def _nonblank(records: Iterable[Any]) -> Iterator[Any]:
    return (record for record in records if len(record) > 1 or (record and record[0].strip()))


def _line(text: str, record: int) -> int:
    """The line, from 1, on which the record with this number ends; record 0 is the header."""
    reader = csv.reader(io.StringIO(text, newline=""))
    next(islice(_nonblank(reader), record, None))
    return reader.line_num


def _parquet_columns(raw: bytes, source: str, need: Sequence[str]) -> dict[str, np.ndarray]:
    """The known columns of a Parquet file, converted."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(raw))
        chosen = positions(table.schema_arrow.names, source, need)
        columns = table.read(columns=list(chosen)) if table.metadata.num_rows else None
    except (pyarrow.ArrowException, OSError) as error:
        raise GuardError(
            f"{source} is a damaged Parquet file; write it again with DataFrame.to_parquet"
        ) from error
    if columns is None:
        raise GuardError(f"{source} has no rows; give at least one item, such as p 0.97, y 1")

    place = rows_of(source)
    return {name: _READERS[name](_values(columns.column(name)), name, place) for name in chosen}


def _values(column: Any) -> Any:
    """An Arrow column as a numpy array, or as a list where it holds missing values or no plain numbers."""
    import pyarrow.types as kinds

    plain = kinds.is_floating(column.type) or kinds.is_integer(column.type) or kinds.is_boolean(column.type)
    return column.to_numpy() if plain and not column.null_count else column.to_pylist()


def positions(header: Sequence[str], source: str, need: Sequence[str]) -> dict[str, int]:
    """Position of each known column in the header. Raises GuardError for one that is missing or there twice."""
    for name in dict.fromkeys((*COLUMNS[:2], *need)):
        if name not in header:
            there = ", ".join(map(_shown, header[:12])) + (", ..." if len(header) > 12 else "")
            raise GuardError(
                f"{source} has no column {name}; its columns are {there}; name one of them {name}"
            )
    for name in COLUMNS:
        if header.count(name) > 1:
            raise GuardError(f"{source} has {header.count(name)} columns named {name}; keep one of them")
    return {name: header.index(name) for name in COLUMNS if name in header}


def _vector(values: Any, column: str, source: str) -> Any:
    """A sequence as it is, an array as numpy, in one dimension."""
    if hasattr(values, "__array__"):
        values = np.asarray(values)
    shape = (
        values.shape if isinstance(values, np.ndarray) else (1,) if isinstance(values, (list, tuple)) else ()
    )
    if len(shape) != 1:
        raise GuardError(
            f"{source}: {column} is no sequence of values; give one value an item, such as [0.97, 0.4]"
        )
    return values


def rows_of(source: str) -> Place:
    """Names the rows of `source`, counted from 1."""
    return lambda row: f"{source} row {row + 1}"


def probabilities(values: Any, column: str, place: Place) -> np.ndarray:
    """Numbers in [0, 1], or text of them, as float64 `[N]`. Raises GuardError naming the first row that is none."""
    found = _floats(values)
    wrong = np.flatnonzero(~((found >= 0) & (found <= 1)))
    if wrong.size:
        row = int(wrong[0])
        raise GuardError(
            f"{place(row)}: {column} is {_shown(values[row])}; give a number from 0 to 1, such as 0.97"
        )
    return found


def _floats(values: Any) -> np.ndarray:
    """Values as float64 `[N]`, NaN where one is no number; of a narrower float, its shortest decimal."""
    kind = getattr(values, "dtype", np.dtype(object))
    if kind == np.float64 or kind.kind in "iu":
        return np.array(values, dtype=np.float64)
    if kind.kind == "f" and kind.itemsize < 8:
        return values.astype(str).astype(np.float64)
    if set(map(type, values)) == {str} and "_" not in "".join(values):  # Python reads 0_5 as 5
        try:
            return np.fromiter(map(float, values), np.float64, count=len(values))
        except ValueError:
            pass
    return np.fromiter(map(_number, values), np.float64, count=len(values))


def _number(value: Any) -> float:
    """One value as a float; NaN where it is a truth value, missing or no number."""
    if isinstance(value, (bool, np.bool_)):
        return float("nan")
    if isinstance(value, (np.float16, np.float32)):
        return float(str(value))
    try:
        return float("nan") if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def labels(values: Any, column: str, place: Place) -> np.ndarray:
    """Labels 0 and 1 as int8 `[N]`, from numbers, booleans or text. Raises GuardError naming the first bad row."""
    kind = getattr(values, "dtype", np.dtype(object)).kind
    if kind in "biuf":
        found = np.where(values == 1, 1, np.where(values == 0, 0, -1)).astype(np.int8)
    else:
        texts = list(map(str, values))
        codes = {text: _LABELS.get(text.strip().lower(), -1) for text in set(texts)}
        found = np.fromiter(map(codes.__getitem__, texts), np.int8, count=len(texts))
    wrong = np.flatnonzero(found < 0)
    if wrong.size:
        row = int(wrong[0])
        raise GuardError(
            f"{place(row)}: {column} is {_shown(values[row])}; give 1 (allowed) or 0 (not allowed)"
        )
    return found


def _groups(values: Any, column: str, place: Place) -> np.ndarray:
    """Names of groups as an object array `[N]` of text."""
    if set(map(type, values)) != {str}:
        values = ["" if value is None or value != value else str(value) for value in values]
    names = {text: text.strip() for text in set(values)}
    found = np.empty(len(values), dtype=object)
    found[:] = list(map(names.__getitem__, values))
    empty = np.flatnonzero(found == "")
    if empty.size:
        raise GuardError(
            f"{place(int(empty[0]))}: {column} is missing; name one, such as refunds, or drop the column"
        )
    return found


def _shown(value: Any) -> str:
    """A value as an error prints it, on one line and short."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return "missing"
    text = str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 40 else text[:37] + "..."


_READERS: dict[str, Callable[[Any, str, Place], np.ndarray]] = {
    "p": probabilities,
    "y": labels,
    "p_injected": probabilities,
    "group": _groups,
}
