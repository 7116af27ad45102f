"""Tables of a study: what each column is, how a table is stored and printed. Imports pandas late.

A table is stored three times: Parquet and CSV hold the numbers in full, LaTeX shows them. An interval is two
columns `NAME_lower` and `NAME_upper`; in print its ends are rounded outward, so that the printed interval
contains the stored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pomdp.whole_file import write_whole

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["key", "exact", "interval", "estimate", "ignore"]
UNDEFINED = "--"
TINY = 1e-4
_NUMBERS = re.compile(r"[-+\[\](), .0-9e]*[0-9][-+\[\](), .0-9e]*")
_POWER = re.compile(r"e([-+])0*([0-9]+)")
_EXACTLY = Context(prec=400)


class TableError(ValueError):
    """A frame that does not have the columns its table declares, or a folder without the table."""


@dataclass(frozen=True)
class Column:
    """One column: its kind decides how a fresh table is compared with a committed one, and how it is printed.

    key: names the row. exact: equal to 1e-9 (relative above 1). interval: both valid, so they must meet, and
    the fresh one is at most `factor` times as wide plus `slack` times the row's entry in column `unit`.
    estimate: within `factor` joint standard errors, read from the column `error`. ignore: never compared, such
    as a time; an interval is ignored where `compared` is False.
    """

    name: str
    kind: Kind
    heading: str
    digits: int = 5
    factor: float = 1.0
    slack: float = 0.0
    unit: str = ""
    error: str = ""
    compared: bool = True

    @property
    def stored(self) -> tuple[str, ...]:
        """Names of the frame's columns that hold it."""
        if self.kind == "interval":
            return (f"{self.name}_lower", f"{self.name}_upper")
        if self.kind == "estimate":
            return (self.name, self.error)
        return (self.name,)


def key(name: str, heading: str) -> Column:
    """A column that names the row."""
    return Column(name, "key", heading)


def exact(name: str, heading: str, digits: int = 5) -> Column:
    """A column of numbers or texts that any machine must reproduce."""
    return Column(name, "exact", heading, digits)


def interval(
    name: str, heading: str, *, factor: float, slack: float = 0.0, unit: str = "", digits: int = 5
) -> Column:
    """A column of certified intervals whose width may depend on the time that the solver had."""
    return Column(name, "interval", heading, digits, factor, slack, unit)


def derived(name: str, heading: str, digits: int = 5) -> Column:
    """A column of intervals that are not compared: they follow from others, or from a choice among equals."""
    return Column(name, "interval", heading, digits, compared=False)


def estimate(name: str, heading: str, *, error: str, standard_errors: float = 4.0, digits: int = 4) -> Column:
    """A column of sample means whose standard error stands in the column `error`."""
    return Column(name, "estimate", heading, digits, standard_errors, error=error)


def ignore(name: str, heading: str, digits: int = 3) -> Column:
    """A column that is shown but never compared."""
    return Column(name, "ignore", heading, digits)


@dataclass(frozen=True)
class Table:
    """A table of a study: name of its files, columns in order, caption."""

    name: str
    columns: tuple[Column, ...]
    caption: str

    @property
    def stored(self) -> list[str]:
        """Names of the frame's columns, in order."""
        return [name for column in self.columns for name in column.stored]

    @property
    def keys(self) -> list[str]:
        """Names of the columns that name a row."""
        return [column.name for column in self.columns if column.kind == "key"]


def check_frame(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its columns in order; TableError for one missing or unknown, or a repeated row."""
    missing = [name for name in table.stored if name not in frame.columns]
    unknown = [str(name) for name in frame.columns if name not in table.stored]
    if missing or unknown:
        raise TableError(f"table {table.name}: missing columns {missing}, undeclared columns {unknown}")
    repeated = frame.duplicated(table.keys)
    if repeated.any():
        row = frame.loc[repeated, table.keys].iloc[0].to_dict()
        raise TableError(f"table {table.name} has the row {row} twice; its key columns must name each row")
    for column in table.columns:
        if column.kind == "interval" and (frame[column.stored[0]] > frame[column.stored[1]]).any():
            raise TableError(f"table {table.name}: a lower end of {column.name} lies above its upper end")
    return frame[table.stored].reset_index(drop=True)


def write_table(table: Table, frame: pd.DataFrame, folder: Path, note: str = "") -> None:
    """Write NAME.parquet, NAME.csv and NAME.tex; `note` becomes a comment at the head of the LaTeX file."""
    folder.mkdir(parents=True, exist_ok=True)
    checked = check_frame(table, frame)
    checked.to_parquet(folder / f"{table.name}.parquet", index=False)
    write_whole(folder / f"{table.name}.csv", checked.to_csv(index=False, lineterminator="\n"))
    head = f"% {note}\n" if note else ""
    write_whole(folder / f"{table.name}.tex", head + to_latex(table, checked))


def read_table(table: Table, folder: Path) -> pd.DataFrame:
    """Read a stored table; TableError where the folder has none."""
    import pandas as pd

    path = folder / f"{table.name}.parquet"
    if not path.is_file():
        raise TableError(f"{folder} holds no table {table.name}; run the study first")
    return check_frame(table, pd.read_parquet(path))


def read_tables(tables: tuple[Table, ...], folder: Path) -> dict[str, pd.DataFrame]:
    """All tables of a study from their folder."""
    return {table.name: read_table(table, folder) for table in tables}


def printed(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """The table as texts, one column per declared column: intervals as [lower, upper], undefined as --."""
    import pandas as pd

    shown: dict[str, list[str]] = {}
    for column in table.columns:
        if column.kind == "interval":
            ends = zip(frame[column.stored[0]], frame[column.stored[1]], strict=True)
            shown[column.heading] = [interval_text(lower, upper, column.digits) for lower, upper in ends]
        elif column.kind == "estimate":
            pairs = zip(frame[column.name], frame[column.error], strict=True)
            shown[column.heading] = [estimate_text(value, error, column.digits) for value, error in pairs]
        else:
            shown[column.heading] = [cell_text(value, column.digits) for value in frame[column.name]]
    return pd.DataFrame(shown)


def to_text(table: Table, frame: pd.DataFrame) -> str:
    """The table for a terminal: aligned columns under their headings without LaTeX's marks."""
    shown = printed(table, frame)
    headings = [_without_math(heading) for heading in shown.columns]
    rows = [headings, *shown.to_numpy().tolist()]
    widths = [max(len(row[place]) for row in rows) for place in range(len(headings))]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def to_latex(table: Table, frame: pd.DataFrame) -> str:
    """The table as LaTeX with booktabs rules, caption and label."""
    shown = printed(table, frame).map(_latex_cell)
    kinds = "".join("l" if column.kind == "key" else "r" for column in table.columns)
    styler = shown.style.hide(axis="index")
    return styler.to_latex(
        hrules=True,
        column_format=kinds,
        caption=table.caption,
        label=f"tab:{table.name}",
        position_float="centering",
    )


def cell_text(value: object, digits: int) -> str:
    """A single value: numbers to `digits` significant digits, undefined as --."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNDEFINED
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def interval_text(lower: float, upper: float, digits: int) -> str:
    """[lower, upper] with ends rounded outward at the place of the `digits`-th digit of the larger end.

    A whole number known exactly prints as itself; tiny numbers print in powers of ten, to three digits.
    """
    if math.isnan(lower) or math.isnan(upper):
        return UNDEFINED
    if lower == upper and float(lower).is_integer():
        return f"{abs(lower) if lower == 0 else lower:.0f}"
    largest = max(abs(lower), abs(upper))
    tiny = largest < TINY
    place = min(0, math.floor(math.log10(largest)) + 1 - (min(digits, 3) if tiny else digits))
    low, high = _round(lower, place, ROUND_FLOOR, tiny), _round(upper, place, ROUND_CEILING, tiny)
    return low if low == high else f"[{low}, {high}]"


def estimate_text(value: float, error: float, digits: int) -> str:
    """value (error): the mean to the error's second digit, or to `digits` where the error is undefined."""
    if math.isnan(value):
        return UNDEFINED
    if math.isnan(error) or error == 0:
        return f"{value:.{digits}g} ({UNDEFINED if math.isnan(error) else '0'})"
    place = math.floor(math.log10(error)) - 1
    return f"{_round(value, place, ROUND_HALF_EVEN)} ({_round(error, place, ROUND_HALF_EVEN)})"


def rows_by_key(table: Table, frame: pd.DataFrame) -> Mapping[tuple[object, ...], pd.Series]:
    """The rows of a table under the values of its key columns."""
    return {tuple(row[name] for name in table.keys): row for _, row in frame.iterrows()}


def _round(value: float, place: int, rounding: str, powers: bool = False) -> str:
    # Decimal(float) is exact, so the rounding direction is kept whatever the binary digits.
    rounded = Decimal(value).quantize(Decimal(1).scaleb(place), rounding=rounding, context=_EXACTLY)
    if powers:
        return f"{rounded:e}" if rounded else "0"
    return f"{rounded if rounded else abs(rounded):f}"


def _without_math(heading: str) -> str:
    return heading.replace("$", "").replace("\\", "").replace("{", "").replace("}", "")


def _latex_cell(text: str) -> str:
    if text == UNDEFINED:
        return text
    if _NUMBERS.fullmatch(text):
        return f"${_POWER.sub(_times_ten, text)}$"
    return text.replace("\\", "\\textbackslash ").replace("_", "\\_").replace("&", "\\&").replace("%", "\\%")


def _times_ten(found: re.Match[str]) -> str:
    return rf" \cdot 10^{{{found[1].replace('+', '')}{found[2]}}}"
