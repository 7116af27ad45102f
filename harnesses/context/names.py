"""Names of context maps: `NAME:ARGS`, a wrapped map last, read into recipes; imports the files of the maps.

    last:2    oldest_first:3000    counter:last:2    pin:flip/t2:last:1

A recipe becomes a map once the model M_0, the horizon and the sizes of messages are known.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harnesses.context.context_map import ContextMap
from harnesses.context.message import Sizes
from harnesses.context.window import Full, Last, LastMessages, Null
from pomdp.model import POMDP, ModelError

Make = Callable[[POMDP, int | None, Sizes], ContextMap]


@dataclass(frozen=True)
class MapRecipe:
    """A context map by name, before it knows its model; `name` is canonical and reads back to the same recipe."""

    name: str
    make: Make = field(compare=False, repr=False)

    def bind(self, model: POMDP, horizon: int | None = None, sizes: Sizes | None = None) -> ContextMap:
        """The map on M_0 = `model` within a horizon. Raises ModelError where they do not fit the map."""
        return self.make(model, horizon, Sizes() if sizes is None else sizes)


def parse_map(text: str | Sequence[str]) -> MapRecipe:
    """The recipe of a text, or of a list: the innermost map, then its wrappers from the inside out.

    Names accept - for _. Raises ModelError with an example of what was meant.
    """
    whole = text if isinstance(text, str) else ":".join(reversed([str(part) for part in text]))
    return _read(whole.strip().split(":"), whole)


def _read(words: list[str], whole: str) -> MapRecipe:
    """The recipe of the words of a text, the map's name first."""
    name = words[0].strip().replace("-", "_").lower() if words else ""
    if name not in READERS:
        near = difflib.get_close_matches(name, READERS, 1)
        meant = f"; {near[0]}?" if near else ""
        raise ModelError(
            f"no context map {name!r} in {whole!r}{meant} known: {', '.join(READERS)}; such as last:2"
        )
    return READERS[name]([word.strip() for word in words[1:]], whole)


def _full(words: list[str], whole: str) -> MapRecipe:
    _no_more(words[1:], "full:6", whole)
    if words:
        return _ready(Full(_count(words[0], "full needs a number of pairs", "full:6")))

    def make(model: POMDP, horizon: int | None, sizes: Sizes) -> ContextMap:
        if horizon is None:
            raise ModelError("full needs a number of pairs without a horizon; give full:6 or --horizon N")
        return Full(horizon)

    return MapRecipe("full", make)


def _last(words: list[str], whole: str) -> MapRecipe:
    _no_more(words[1:], "last:2", whole)
    return _ready(Last(_count(words[0] if words else "", "last needs a number of pairs", "last:2")))


def _last_messages(words: list[str], whole: str) -> MapRecipe:
    example = "last_messages:3"
    _no_more(words[1:], example, whole)
    count = _count(words[0] if words else "", "last_messages needs a number of messages", example)
    return _ready(LastMessages(count))


def _null(words: list[str], whole: str) -> MapRecipe:
    _no_more(words, "null", whole)
    return _ready(Null())


def _ready(phi: ContextMap) -> MapRecipe:
    """The recipe of a map that needs no model."""
    return MapRecipe(phi.name, lambda model, horizon, sizes: phi)


def _count(word: str, wanted: str, example: str) -> int:
    """A whole number from 0, or ModelError."""
    if not (word.isascii() and word.isdigit() and len(word) <= 12):
        raise ModelError(f"{wanted}, a whole number such as {example}; got {word!r}")
    return int(word)


def _no_more(words: list[str], example: str, whole: str) -> None:
    """ModelError where words are left over."""
    if words:
        raise ModelError(f"{':'.join(words)!r} is too much in {whole!r}; a right one is {example}")


READERS: dict[str, Callable[[list[str], str], MapRecipe]] = {
    "full": _full,
    "last": _last,
    "last_messages": _last_messages,
    "null": _null,
}
