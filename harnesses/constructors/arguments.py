"""Arguments of constructors as text or table entries: read, checked, and written back; imports base.

A reader takes what a person wrote and the place for the error; a writer gives the text, None where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from fractions import Fraction
from typing import Any

from harnesses.constructors import base
from pomdp.model import ModelError


def _plainly(value: Any) -> str | None:
    """A number or word as it is; None for a table."""
    return None if isinstance(value, Mapping) or is_dataclass(value) else str(value)


@dataclass(frozen=True)
class Parameter:
    """An argument: its name, reader, writer, text of the default (None: it must be given), keyword if another."""

    name: str
    read: Callable[[Any, str], Any]
    show: Callable[[Any], str | None] = _plainly
    default: str | None = None
    keyword: str = ""


def probability(value: Any, where: str) -> Fraction:
    """From 0 to 1."""
    return base.probability(value, where)


def probability_or(*words: str) -> Callable[[Any, str], Fraction | str]:
    """A reader of a number from 0 to 1, or of one of some words."""

    def read(value: Any, where: str) -> Fraction | str:
        if isinstance(value, str) and value.strip() in words:
            return value.strip()
        try:
            return base.probability(value, where)
        except ModelError as error:
            raise ModelError(f"{error}; or write {' or '.join(words)}") from None

    return read


def charge(value: Any, where: str) -> Fraction:
    """At least 0."""
    return base.charge_of(value, where)


def whole(value: Any, where: str) -> int:
    """A whole number from 1 on."""
    return base.count(value, where)


def name(value: Any, where: str) -> str:
    """One name."""
    if not isinstance(value, str) or not value.strip():
        raise ModelError(f"{where} is {value!r}; give a name")
    return value.strip()


def names(value: Any, where: str) -> tuple[str, ...]:
    """Names, or patterns with `*`: `a,b` or a list."""
    words = (
        value.split(",")
        if isinstance(value, str)
        else list(value)
        if isinstance(value, Sequence)
        else [value]
    )
    return tuple(name(word, where) for word in words)


def show_names(value: Sequence[str]) -> str:
    """`a,b`."""
    return ",".join(value)


def table(value: Any, where: str) -> dict[str, Any]:
    """A table, whose numbers become exact."""
    if not isinstance(value, Mapping):
        raise ModelError(f"{where} is {value!r}; give a table")
    read: dict[str, Any] = {}
    for key, entry in value.items():
        read[str(key)] = (
            table(entry, f"{where}.{key}") if isinstance(entry, Mapping) else base.number(entry, where)
        )
    return read


def weights(value: Any, where: str) -> dict[str, Fraction]:
    """{name: probability}."""
    return {key: base.probability(weight, f"{where}.{key}") for key, weight in table(value, where).items()}


def fields(kind: type[Any]) -> Callable[[Any, str], Any]:
    """A reader of a dataclass of numbers from a table with its field names."""

    def read(value: Any, where: str) -> Any:
        given = {} if value == "{}" else table(value, where)
        known = list(kind.__dataclass_fields__)
        wrong = next((key for key in given if key not in known), None)
        if wrong is not None:
            raise ModelError(f"{where} has no entry {wrong!r}; known: {', '.join(known)}")
        return kind(**given)

    return read


def choice(no: str, yes: str) -> Callable[[Any, str], bool]:
    """A reader of a truth value that a text writes as one of two words."""

    def read(value: Any, where: str) -> bool:
        if value is True or value == yes:
            return True
        if value is False or value == no:
            return False
        raise ModelError(f"{where} is {value!r}; give {yes} or {no}")

    return read


def show_choice(no: str, yes: str) -> Callable[[Any], str]:
    """The word for a truth value."""
    return lambda value: yes if value else no


def one_of(*words: str) -> Callable[[Any, str], str]:
    """A reader of one of some words."""

    def read(value: Any, where: str) -> str:
        if value not in words:
            raise ModelError(f"{where} is {value!r}; give {' or '.join(words)}")
        return str(value)

    return read


def groups(value: Any, where: str) -> dict[str, Any]:
    """Exposed name -> base actions or {base action: probability}: `open=a|b,close=c|d` or a table."""
    if isinstance(value, str):
        return {key: tuple(words) for key, words in _assignments(value, where)}
    if not isinstance(value, Mapping):
        raise ModelError(f"{where} is {value!r}; write open=open-left|open-right or a table")
    read: dict[str, Any] = {}
    for key, group in value.items():
        place = f"{where}.{key}"
        read[str(key)] = weights(group, place) if isinstance(group, Mapping) else names(group, place)
    return read


def show_groups(value: Mapping[str, Any]) -> str | None:
    """`open=a|b`, None where probabilities are given."""
    if any(isinstance(group, Mapping) for group in value.values()):
        return None
    return ",".join(f"{key}={'|'.join(group)}" for key, group in value.items())


def rules(value: Any, where: str) -> dict[str, dict[str, str]]:
    """{action pattern: {observation pattern: shown instead}}: `read>ok=flag-0|flag-1,*>x=*` or a table."""
    read: dict[str, dict[str, str]] = {}
    if isinstance(value, str):
        for key, words in _assignments(value, where):
            action, arrow, shown = key.rpartition(">")
            row = read.setdefault(action if arrow else "*", {})
            row.update((word, name(shown, where)) for word in words)
        return read
    if not isinstance(value, Mapping) or not all(isinstance(row, Mapping) for row in value.values()):
        raise ModelError(f"{where} is {value!r}; write read>ok=flag-0|flag-1 or a table of tables")
    for action, row in value.items():
        read[str(action)] = {
            str(seen): name(shown, f"{where}.{action}.{seen}") for seen, shown in row.items()
        }
    return read


def show_rules(value: Mapping[str, Mapping[str, str]]) -> str:
    """`read>ok=flag-0|flag-1`, in order: patterns of one action that show the same are written together."""
    shown: list[str] = []
    for action, row in value.items():
        runs: list[tuple[str, list[str]]] = []
        for seen, new in row.items():
            if runs and runs[-1][0] == new:
                runs[-1][1].append(seen)
            else:
                runs.append((new, [seen]))
        shown.extend(f"{action}>{new}={'|'.join(seen)}" for new, seen in runs)
    return ",".join(shown)


def _assignments(text: str, where: str) -> list[tuple[str, list[str]]]:
    """`key=a|b,key=c` as pairs."""
    found = []
    for piece in text.split(","):
        key, sign, words = piece.partition("=")
        if not sign or not key.strip() or not words.strip():
            raise ModelError(f"{where}: {piece!r} is no NAME=ONE|OTHER, such as ok=flag-0|flag-1")
        found.append((key.strip(), [name(word, where) for word in words.split("|")]))
    return found


def plain(value: Any) -> Any:
    """A value as JSON holds it: exact numbers as text."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {key: entry for key, entry in asdict(value).items() if entry}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return [plain(entry) for entry in value]
    return value if isinstance(value, (str, bool, int)) else str(value)


def ranges_split(words: Sequence[str], is_whole: Sequence[bool]) -> list[str]:
    """Words with `3-4` taken for two whole numbers where two are expected."""
    found: list[str] = []
    for word in words:
        k = len(found)
        if re.fullmatch(r"\d+-\d+", word) and all(is_whole[k : k + 2]) and len(is_whole) >= k + 2:
            found.extend(word.split("-"))
        else:
            found.append(word)
    return found
