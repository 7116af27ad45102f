"""Names of context maps: `NAME:ARGS`, a wrapped map last, read into recipes; imports the files of the maps.

    last:2    oldest_first:3000    counter:last:2    pin:flip/t2:last:1    retrieve:read>flip/t2:last:1
    summary:count:3:error=1/10     belief_grid:4     compose:rename:t2>t,t3>t:last:2

A recipe becomes a map once the model M_0, the horizon and the sizes of messages are known; most need no model.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from harnesses.context.belief_grid import BeliefGrid, grid_name, require_grid
from harnesses.context.compose import Calls, Compose, Psi, Rename, Results, Unordered
from harnesses.context.context_map import ContextMap
from harnesses.context.counter import Counter
from harnesses.context.held import Held
from harnesses.context.message import Sizes
from harnesses.context.oldest_first import OldestFirst
from harnesses.context.pattern import Pattern, can_recur, parse_patterns, require_names
from harnesses.context.pin import Pin
from harnesses.context.retrieve import Register, Retrieve
from harnesses.context.summary import Count, First, Latest, Pairs, Parity, Statistic, Summary
from harnesses.context.window import Full, Last, LastMessages, Null
from pomdp.model import POMDP, ModelError
from pomdp.rational import read_rational

Make = Callable[[POMDP | None, int | None, Sizes], ContextMap]


@dataclass(frozen=True)
class MapRecipe:
    """A context map by name, before it knows its model; `name` is canonical and reads back to the same recipe."""

    name: str
    make: Make = field(compare=False, repr=False)

    def bind(self, model: POMDP | None, horizon: int | None = None, sizes: Sizes | None = None) -> ContextMap:
        """The map on M_0 = `model` within a horizon. Raises ModelError where they do not fit the map.

        None where no model is known, as in a running agent: no name is checked then, and belief_grid is refused.
        """
        return self.make(model, horizon, Sizes() if sizes is None else sizes)


def parse_map(text: str | Sequence[str]) -> MapRecipe:
    """The recipe of a text, or of a list: the innermost map, then its wrappers from the inside out.

    Names accept - for _. Raises ModelError with an example of what was meant.
    """
    whole = text if isinstance(text, str) else ":".join(reversed([str(part) for part in text]))
    return _read([word.strip() for word in whole.split(":")], whole)


def _read(words: list[str], whole: str) -> MapRecipe:
    """The recipe of the words of a text, the map's name first."""
    name = _choice(words[0], READERS, f"no context map {{}} in {whole!r}", "last:2")
    return READERS[name](words[1:], whole)


def _full(words: list[str], whole: str) -> MapRecipe:
    _no_more(words[1:], "full:6", whole)
    if words:
        return _ready(Full(_count(words, "full needs a number of pairs", "full:6")))

    def make(model: POMDP | None, horizon: int | None, sizes: Sizes) -> ContextMap:
        if horizon is None:
            raise ModelError("full needs a number of pairs without a horizon; give full:6 or --horizon N")
        return Full(horizon)

    return MapRecipe("full", make)


def _last(words: list[str], whole: str) -> MapRecipe:
    _no_more(words[1:], "last:2", whole)
    return _ready(Last(_count(words, "last needs a number of pairs", "last:2")))


def _last_messages(words: list[str], whole: str) -> MapRecipe:
    _no_more(words[1:], "last_messages:3", whole)
    return _ready(LastMessages(_count(words, "last_messages needs a number of messages", "last_messages:3")))


def _null(words: list[str], whole: str) -> MapRecipe:
    _no_more(words, "null", whole)
    return _ready(Null())


def _oldest_first(words: list[str], whole: str) -> MapRecipe:
    budget = _count(words, "oldest_first needs a budget in tokens", "oldest_first:3000")
    rest, whole_results = words[1:], True
    if rest and rest[0] in ("whole", "partial"):
        whole_results = rest.pop(0) == "whole"
    keep = 0
    if rest:
        keep = _count(rest, "oldest_first keeps a number of messages", "oldest_first:3000:partial:4")
    _no_more(rest[1:], "oldest_first:3000 or oldest_first:3000:partial:4", whole)
    return _ready(OldestFirst(budget, whole_results, keep))


def _summary(words: list[str], whole: str) -> MapRecipe:
    rest, error = list(words), Fraction(0)
    if rest and rest[-1].startswith("error="):
        error = _probability(rest.pop()[len("error=") :], "summary:count:3:error=1/10")
    name = _choice(rest[0] if rest else "", STATISTICS, "summary has no statistic {}", "summary:count")
    statistic = STATISTICS[name](rest[1:], whole)
    recipe = _ready(Summary(statistic, error))
    if isinstance(statistic, Parity):
        return _checked(recipe, [statistic.pattern])
    return recipe


def _statistic_count(words: list[str], whole: str) -> Statistic:
    _no_more(words[1:], "summary:count:3", whole)
    return Count(_count(words, "summary:count needs a clip", "summary:count:3") if words else None)


def _statistic_first(words: list[str], whole: str) -> Statistic:
    _no_more(words[1:], "summary:first:2", whole)
    return First(_count(words, "summary:first needs a number of pairs", "summary:first:2"))


def _statistic_parity(words: list[str], whole: str) -> Statistic:
    _no_more(words[1:], "summary:parity:flip/*", whole)
    return Parity(Pattern.parse(words[0])) if words else Parity()


def _statistic_pairs(words: list[str], whole: str) -> Statistic:
    _no_more(words, "summary:pairs", whole)
    return Pairs()


def _statistic_latest(words: list[str], whole: str) -> Statistic:
    _no_more(words, "summary:latest", whole)
    return Latest()


def _belief_grid(words: list[str], whole: str) -> MapRecipe:
    resolution = _count(words, "belief_grid needs a resolution", "belief_grid:4")
    _no_more(words[2:], "belief_grid:4:predict", whole)
    fallback = words[1] if words[1:] else "prior"
    require_grid(resolution, fallback)
    name = grid_name(resolution, fallback)

    def make(model: POMDP | None, horizon: int | None, sizes: Sizes) -> ContextMap:
        if model is None:
            raise ModelError(f"{name} needs a model of the task; a map that needs none is last:10")
        return BeliefGrid(model, resolution, fallback)

    return MapRecipe(name, make)


def _pin(words: list[str], whole: str) -> MapRecipe:
    inner = _inner(words[1:], "pin", "pin:flip/t2:last:1", whole)
    patterns = parse_patterns(words[0])

    def make(model: POMDP | None, horizon: int | None, sizes: Sizes) -> ContextMap:
        require_names(model, patterns)
        return Pin(patterns, inner.make(model, horizon, sizes), can_recur(model, patterns))

    return MapRecipe(f"pin:{','.join(pattern.text for pattern in patterns)}:{inner.name}", make)


def _counter(words: list[str], whole: str) -> MapRecipe:
    limited = bool(words) and words[0].isdigit()
    limit = _count(words, "counter needs a limit", "counter:5:last:2") if limited else None
    inner = _inner(words[1 if limited else 0 :], "counter", "counter:last:2 or counter:5:last:2", whole)
    name = Counter(Null(), limit).name.removesuffix("null") + inner.name
    return MapRecipe(name, lambda *given: Counter(inner.make(*given), limit))


def _held(words: list[str], whole: str) -> MapRecipe:
    example = "held:3:last:2 or held:3|u0,u1:last:2"
    length, _, named = (words[0] if words else "").partition("|")
    k = _count([length], "held needs a number of steps", example)
    inner = _inner(words[1:], "held", example, whole)
    reconsider = tuple(name.strip() for name in named.split(",")) if named else ()

    def make(model: POMDP | None, horizon: int | None, sizes: Sizes) -> ContextMap:
        if model is not None:
            for observation in reconsider:
                model.observation_index(observation)
        return Held(k, inner.make(model, horizon, sizes), reconsider)

    return MapRecipe(Held(k, Null(), reconsider).name.removesuffix("null") + inner.name, make)


def _retrieve(words: list[str], whole: str) -> MapRecipe:
    inner = _inner(words[1:], "retrieve", "retrieve:read>flip/t2:last:1", whole)
    registers = tuple(Register.parse(part) for part in words[0].split(","))

    def make(model: POMDP | None, horizon: int | None, sizes: Sizes) -> ContextMap:
        stored = [register.stored for register in registers]
        require_names(model, [*stored, *(register.trigger for register in registers)])
        return Retrieve(registers, inner.make(model, horizon, sizes), can_recur(model, stored))

    return MapRecipe(f"retrieve:{','.join(register.text for register in registers)}:{inner.name}", make)


def _compose(words: list[str], whole: str) -> MapRecipe:
    known: dict[str, Psi | None] = {
        "results": Results(),
        "calls": Calls(),
        "unordered": Unordered(),
        "rename": None,
    }
    name = _choice(words[0] if words else "", known, "compose has no psi {}", "compose:results:last:2")
    psi = known[name]
    if psi is not None:
        inner = _inner(words[1:], f"compose:{name}", f"compose:{name}:last:2", whole)
        return MapRecipe(f"compose:{name}:{inner.name}", lambda *given: Compose(psi, inner.make(*given)))
    example = "compose:rename:t2>t,t3>t:last:2"
    inner = _inner(words[2:], "compose:rename", example, whole)
    rename = Rename.parse(words[1])

    def make(model: POMDP | None, horizon: int | None, sizes: Sizes) -> ContextMap:
        if model is not None:
            for old, _ in rename.pairs:
                model.observation_index(old)
        return Compose(rename, inner.make(model, horizon, sizes))

    return MapRecipe(f"compose:{rename.name}:{inner.name}", make)


def _inner(words: list[str], wrapper: str, example: str, whole: str) -> MapRecipe:
    """The recipe of the wrapped map, which the remaining words name."""
    if not words or not words[0]:
        raise ModelError(f"{wrapper} in {whole!r} lacks the map that it wraps; a right one is {example}")
    return _read(words, whole)


def _ready(phi: ContextMap) -> MapRecipe:
    """The recipe of a map that needs no model."""
    return MapRecipe(phi.name, lambda model, horizon, sizes: phi)


def _checked(recipe: MapRecipe, patterns: Sequence[Pattern]) -> MapRecipe:
    """The recipe, refused by models without the patterns' names."""

    def make(model: POMDP | None, horizon: int | None, sizes: Sizes) -> ContextMap:
        require_names(model, patterns)
        return recipe.make(model, horizon, sizes)

    return MapRecipe(recipe.name, make)


def _choice(word: str, known: Iterable[str], wrong: str, example: str) -> str:
    """The known name that a word spells, or ModelError: `wrong` has a place for the word."""
    name, names = word.strip().replace("-", "_").lower(), list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        meant = f" ({near[0]}?)" if near else ""
        raise ModelError(f"{wrong.format(repr(word))}{meant}; known: {', '.join(names)}; such as {example}")
    return name


def _count(words: Sequence[str], wanted: str, example: str) -> int:
    """The first word as a whole number from 0, or ModelError."""
    word = words[0] if words else ""
    if not (word.isascii() and word.isdigit() and len(word) <= 12):
        raise ModelError(f"{wanted}, a whole number such as {example}; got {word!r}")
    return int(word)


def _probability(word: str, example: str) -> Fraction:
    """A rational; the map refuses one outside [0, 1]."""
    try:
        return read_rational(word)
    except ValueError:
        raise ModelError(f"the error probability {word!r} is no number; a right one is {example}") from None


def _no_more(words: Sequence[str], example: str, whole: str) -> None:
    """ModelError where words are left over."""
    if words:
        raise ModelError(f"{':'.join(words)!r} is too much in {whole!r}; a right one is {example}")


STATISTICS: dict[str, Callable[[list[str], str], Statistic]] = {
    "count": _statistic_count,
    "pairs": _statistic_pairs,
    "latest": _statistic_latest,
    "first": _statistic_first,
    "parity": _statistic_parity,
}
READERS: dict[str, Callable[[list[str], str], MapRecipe]] = {
    "full": _full,
    "last": _last,
    "last_messages": _last_messages,
    "oldest_first": _oldest_first,
    "null": _null,
    "summary": _summary,
    "belief_grid": _belief_grid,
    "pin": _pin,
    "counter": _counter,
    "held": _held,
    "retrieve": _retrieve,
    "compose": _compose,
}
KNOWN = tuple(READERS)
