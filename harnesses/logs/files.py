"""Files: which files of a folder are logs, and the runs of all of them; imports the stream and the formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harnesses.logs.fields import LogError
from harnesses.logs.formats import KNOWN, read_run, recognise, shape
from harnesses.logs.run import Run
from harnesses.logs.stream import Report, records

TRIED = 20  # records at the beginning of a file of which one must be of a known format


@dataclass(frozen=True)
class Found:
    """The logs under a path, each with the name of its folder as reports show it, and other files with the reason."""

    logs: tuple[tuple[Path, str], ...]
    others: tuple[tuple[Path, str], ...]

    @property
    def bytes(self) -> int:
        """The size of all logs."""
        return sum(path.stat().st_size for path, _ in self.logs)


@dataclass(frozen=True)
class Broken:
    """A record that could not be read, with the line on which it begins."""

    file: Path
    line: int
    problem: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.file}, line {self.line}: {self.problem}"


def find_logs(path: Path) -> Found:
    """A file, or the files of a folder and its folders, by name; hidden ones and links to folders are passed over.

    LogError where none of them is a log, OSError where the path cannot be read.
    """
    if not path.is_dir():
        if not path.is_file():
            path.stat()  # OSError where there is nothing
            raise LogError(f"{path} is neither a file nor a folder; give a log such as runs.jsonl")
        reason = not_a_log(path)
        if reason is not None:
            raise LogError(f"{path}: {reason}")
        return Found(((path, path.absolute().parent.name or "."),), ())
    logs, others = [], []
    for file in _files(path):
        reason = not_a_log(file)
        if reason is None:
            folder = file.parent.relative_to(path).as_posix()
            logs.append((file, path.resolve().name if folder == "." else folder))
        else:
            others.append((file, reason))
    if not logs:
        raise LogError(f"{path} holds no log of a known format; known: {KNOWN}")
    return Found(tuple(logs), tuple(others))


def not_a_log(path: Path) -> str | None:
    """Why a file is no log; None where one of its first records is of a known format."""
    reason = "empty"
    try:
        for number, record in enumerate(islice(records(path), TRIED)):
            if record.problem is None and recognise(record.value) is not None:
                return None
            if number == 0:
                what = record.problem or shape(record.value)
                reason = f"unknown log format, {what}; known: {KNOWN}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return reason


def runs(path: Path, report: Report = lambda read: None) -> Iterator[Run | Broken]:
    """Every run of a log in order, and in its place every record that is none."""
    for record in records(path, report):
        if record.problem is not None:
            yield Broken(path, record.line, record.problem)
            continue
        try:
            run = read_run(record.value, path.stem)
        except LogError as error:
            yield Broken(path, record.line, str(error))
        except RecursionError:
            yield Broken(path, record.line, "nested too deeply")
        else:
            yield run


def _files(folder: Path) -> Sequence[Path]:
    """Regular files below a folder, in the order of their names."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(parent, name) for name in sorted(names) if not name.startswith(".")]
    return [file for file in found if file.is_file()]
