"""Atomic records: one JSON file per (cell, seed); imports numpy and pomdp.whole_file.

A record's key is the SHA-256 of its canonical parameters. Records lie in one folder per source hash, so that
results of two versions of the code never meet in one table unless asked.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pomdp.whole_file import write_whole

Status = Literal["done", "failed", "skipped"]
FORMAT = 1


class RecordError(ValueError):
    """A value that no record can hold, or a file that is no record."""


@dataclass(frozen=True)
class Record:
    """What one cell gave with one seed, or why it gave nothing.

    `rows` are dicts of plain JSON values; `applied` is the fingerprint of what the arm changed; `message`
    says why a record failed or was skipped; times are in seconds of the process that computed it; `device`
    says where.
    """

    study: str
    key: str
    cell: dict[str, Any]
    seed: int | None
    source: str
    status: Status
    rows: tuple[dict[str, Any], ...] = ()
    applied: str | None = None
    message: str | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    device: dict[str, Any] = field(default_factory=dict)


def plain(value: Any, where: str = "value") -> Any:
    """The value in JSON's own types; RecordError naming an entry that is not finite or has no such form."""
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, np.generic):
        return plain(value.item(), where)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(
                f"{where} is {value}; a record holds finite numbers, or None where a figure is undefined"
            )
        return value
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value), where)
    if isinstance(value, Mapping):
        return {_text_key(key, where): plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), where)
    if isinstance(value, (tuple, list)):
        return [plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    raise RecordError(
        f"{where} is of type {type(value).__name__}; "
        "a record holds numbers, text, lists and dicts, such as {'J': 0.5}"
    )


def canonical(value: Any) -> str:
    """One text per value: JSON with sorted keys and no spaces; equal parameters give equal text."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def record_key(study: str, cell: Mapping[str, Any], seed: int | None) -> str:
    """Key of a record: the digest of its study, cell and seed."""
    return digest({"study": study, "cell": cell, "seed": seed})


def records_folder(folder: Path, source: str) -> Path:
    """Where the records computed by the sources with this hash lie."""
    return folder / "records" / source[:16]


def write_record(folder: Path, record: Record) -> Path:
    """Write the record under its source hash and key; a reader sees the whole file or none."""
    body = {"format": FORMAT, **plain(asdict(record), f"record {record.cell}")}
    text = json.dumps(body, sort_keys=True, indent=1, allow_nan=False) + "\n"
    target = records_folder(folder, record.source) / f"{record.key}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, text)
    return target


def read_record(path: Path) -> Record:
    """Read one record; RecordError naming the file where it is none."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body.pop("format") != FORMAT:
            raise RecordError(f"{path}: not a record of format {FORMAT}")
        return Record(**{**body, "rows": tuple(body["rows"])})
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: not a record ({error}); delete the file to compute it again") from error


def read_records(folder: Path, source: str) -> dict[str, Record]:
    """Records computed by the sources with this hash, by key."""
    return {record.key: record for record in _read_folder(records_folder(folder, source))}


def read_other_records(folder: Path, source: str) -> dict[str, Record]:
    """Records computed by any other version of the sources, by key; of several the one written last."""
    current = records_folder(folder, source)
    others = [path for path in (folder / "records").glob("*/*.json") if path.parent != current]
    others.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    return {record.key: record for record in map(read_record, others)}


def _read_folder(folder: Path) -> Iterator[Record]:
    for path in sorted(folder.glob("*.json")):
        yield read_record(path)


def _text_key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise RecordError(f"{where} has the key {key!r}; keys of a record are text")
    return key
