"""JSON read strictly: no unknown keys, no NaN, errors name the entry; imports pomdp.arrays and pomdp.model.

`place` is the path of the entry as an error shows it, such as `nodes[2].act`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pomdp.arrays import is_index, short
from pomdp.model import ModelError


def loads(text: str, what: str) -> Any:
    """The data in `text`; ModelError calling it `what` where it is not JSON or gives a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ModelError(f"{what} is not JSON: {error}") from None
    except RecursionError:
        raise ModelError(f"{what} is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # an integer of more digits than Python reads
        raise (
            error
            if isinstance(error, ModelError)
            else ModelError(f"{what} is not JSON that can be read: a number is too long")
        ) from None


def dumps(data: Any) -> str:
    """`data` as JSON that `loads` reads back exactly; floats by their shortest decimal."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)


def entries(data: Any, expected: set[str], place: str) -> dict[str, Any]:
    """The object `data`, whose keys must be exactly `expected`."""
    found = as_object(data, place)
    wrong = sorted(expected ^ set(found))
    if wrong:
        fault = "lacks" if wrong[0] in expected else "has the unknown entry"
        raise ModelError(f"{place} {fault} {short(wrong[0])}; its entries are {', '.join(sorted(expected))}")
    return found


def as_object(value: Any, place: str) -> dict[str, Any]:
    """`value` if it is an object."""
    if not isinstance(value, dict):
        raise ModelError(f"{place} must be an object, found {short(value)}")
    return value


def as_list(value: Any, place: str) -> list[Any]:
    """`value` if it is a list."""
    if not isinstance(value, list):
        raise ModelError(f"{place} must be a list, found {short(value)}")
    return value


def as_number(value: Any, place: str) -> float:
    """`value` if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ModelError(f"{place} is {short(value)}, not a number such as 0.5")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), float("-inf")):  # as 1e999 is read
        raise ModelError(f"{place} is too large for a float")
    return number


def as_node(value: Any, count: int, place: str) -> int:
    """`value` if it is an integer from 0 to count - 1."""
    if not is_index(value) or not 0 <= value < count:
        raise ModelError(f"{place} is {short(value)}, not a node from 0 to {count - 1}")
    return value


def position(value: Any, names: Sequence[str], noun: str, place: str) -> int:
    """Index of the name `value` in `names`, which the error calls `noun`."""
    if not isinstance(value, str) or value not in names:
        known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise ModelError(f"{place}: {short(value)} is no {noun} of the model; known: {known}")
    return names.index(value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ModelError(f"{short(key)} is given twice in one JSON object")
        found[key] = value
    return found


def _refuse(constant: str) -> float:
    raise ModelError(f"{constant} is not a number; JSON has finite numbers only")
