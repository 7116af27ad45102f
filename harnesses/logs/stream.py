"""Stream: the JSON records of a file, one after the other in bounded memory; imports json alone.

Three layouts, told apart by content: an object a line; one array of objects; objects over several lines. A line
that is broken costs that line alone; in the other layouts nothing tells where the next record begins, so that what
follows a broken one is not read.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

CHUNK = 1 << 16  # bytes
LONGEST = 1 << 28  # of a record, in bytes or characters; a longer one is reported, not read
NEAR_THE_END = (
    16  # characters: an error this close to the end of what was read may be a record cut by a chunk
)

Layout = Literal["lines", "array", "objects"]
Report = Callable[[int], None]


class Record(NamedTuple):
    """A record and the line on which it begins; `problem` says in one line why there is no value."""

    line: int
    value: Any = None
    problem: str | None = None


def records(path: Path, report: Report = lambda read: None) -> Iterator[Record]:
    """Every record of a file, broken ones included. `report` is told of the bytes read. OSError as open raises it."""
    layout = layout_of(path)
    with path.open("rb") as stream:
        if layout == "lines":
            yield from _lines(stream, report)
        elif layout is not None:
            yield from _values(stream, layout, report)


def layout_of(path: Path) -> Layout | None:
    """The layout of a file; None where it is empty. A file of anything but JSON counts as lines, all broken."""
    with path.open("rb") as stream:
        first = _next_line(stream)
        if first is None:
            return None
        if first[:1] == b"[":
            return "array"
        second = _next_line(stream)
    # A pretty-printed object goes on with a key or ends; a line of its own begins another object.
    if first[:1] == b"{" and second is not None and second[:1] in b'"}' and not _is_json(first):
        return "objects"
    return "lines"


def _next_line(stream: BinaryIO) -> bytes | None:
    """The next line that is not blank, stripped; of a very long one the beginning."""
    while line := stream.readline(LONGEST):
        line = line.removeprefix(codecs.BOM_UTF8).strip()
        if line:
            return line
    return None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _lines(stream: BinaryIO, report: Report) -> Iterator[Record]:
    """One record a line; blank lines are passed over."""
    number = 0
    while line := stream.readline(LONGEST):
        number += 1
        report(len(line))
        if len(line) == LONGEST and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(CHUNK)
                report(len(line))
            yield Record(number, problem=f"longer than {LONGEST >> 20} MiB")
            continue
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        line = line.rstrip(b"\r\n")
        if line.strip():
            yield _parsed(line, number)


def _parsed(line: bytes, number: int) -> Record:
    try:
        return Record(number, json.loads(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        return Record(number, problem=f"not UTF-8 at byte {error.start + 1}")
    except json.JSONDecodeError as error:
        return Record(number, problem=f"not JSON: {error.msg} at character {error.pos + 1}")
    except RecursionError:
        return Record(number, problem="not JSON that can be read: nested too deeply")
    except ValueError:  # an integer of more digits than Python reads
        return Record(number, problem="not JSON that can be read: a number is too long")


class _Window:
    """The part of a file's text that is being read: `text` from `at` on, which stands on line `line`."""

    def __init__(self, stream: BinaryIO, report: Report) -> None:
        self.stream, self.report = stream, report
        self.decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self.text, self.at, self.line, self.ended = "", 0, 1, False

    def more(self) -> None:
        """Read on, more the longer the unfinished record is. UnicodeDecodeError where it is no UTF-8."""
        chunk = self.stream.read(max(CHUNK, len(self.text) - self.at))
        self.report(len(chunk))
        self.ended = not chunk
        self.text = self.text[self.at :] + self.decoder.decode(chunk, final=self.ended)
        self.at = 0

    def move(self, end: int) -> None:
        """Pass over the text before `end`."""
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def peek(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            end = self.at
            while end < len(self.text) and self.text[end] in " \t\r\n":
                end += 1
            self.move(end)
            if end < len(self.text):
                return self.text[end]
            if self.ended:
                return ""
            self.more()


def _values(stream: BinaryIO, layout: Layout, report: Report) -> Iterator[Record]:
    """The elements of an array, or objects one after the other, by an incremental decoder."""
    window = _Window(stream, report)
    try:
        if layout == "array" and window.peek():
            window.move(window.at + 1)
        while True:
            following = window.peek()
            if not following and layout == "objects":
                return
            if following == "]" and layout == "array":
                yield from _after_the_array(window)
                return
            record = _value(window) if following else Record(window.line, problem="the array does not end")
            yield record
            if record.problem is not None:
                return
            if layout == "array" and window.peek() == ",":
                window.move(window.at + 1)
            elif layout == "array" and window.peek() not in ("]", ""):
                yield Record(window.line, problem="not JSON: a comma is missing; the rest was not read")
                return
    except UnicodeDecodeError:
        yield Record(window.line, problem="not UTF-8 from about here; the rest was not read")


def _after_the_array(window: _Window) -> Iterator[Record]:
    window.move(window.at + 1)
    if window.peek():
        yield Record(window.line, problem="text after the end of the array; it was not read")


def _value(window: _Window) -> Record:
    """The JSON value at the window's place, reading on until it is whole."""
    decode = json.JSONDecoder().raw_decode
    while True:
        line = window.line
        try:
            value, end = decode(window.text, window.at)
        except json.JSONDecodeError as error:
            unfinished = error.msg.startswith("Unterminated") or error.pos >= len(window.text) - NEAR_THE_END
            if window.ended or not unfinished or len(window.text) - window.at > LONGEST:
                at = line + window.text.count("\n", window.at, error.pos)
                return Record(line, problem=f"not JSON: {error.msg} on line {at}; the rest was not read")
            window.more()
        except RecursionError:
            return Record(line, problem="nested too deeply; the rest was not read")
        except ValueError:
            return Record(line, problem="a number is too long; the rest was not read")
        else:
            # A number or word at the very end of what was read may go on; so may 1 where `1.` or `1e-` is read so far.
            cut = not window.text[end:].strip(".eE+-")
            if cut and not window.ended and not isinstance(value, (dict, list, str)):
                window.more()
                continue
            window.move(end)
            return Record(line, value)
