"""Summary: a recursive finite statistic of the history in place of its messages; imports pattern.

Every message is replaced (summarisation). A summariser that errs misses an event with some probability: the
only stochastic delta here. Source: M1 §1.5.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from harnesses.context.context_map import Branches, Memory
from harnesses.context.message import Context, Event, Removal, note, removed
from harnesses.context.pattern import Pattern
from pomdp.model import ModelError


class Statistic(Protocol):
    """A statistic that can be updated: its value is hashable, and equal where it will stay equal."""

    @property
    def name(self) -> str:
        """Canonical text."""
        ...

    @property
    def bounded(self) -> bool:
        """Whether it has finitely many values."""
        ...

    def start(self) -> Any:
        """The value of the empty history."""
        ...

    def add(self, value: Any, event: Event) -> Any:
        """The value after one more event."""
        ...

    def entries(self, value: Any) -> tuple[str, ...]:
        """The value as the entries of a note."""
        ...


@dataclass(frozen=True)
class Count:
    """How often each observation was seen, up to `clip` >= 1 times (None: any number)."""

    clip: int | None = None

    def __post_init__(self) -> None:
        """Refuse a clip that counts nothing."""
        if self.clip is not None and self.clip < 1:
            raise ModelError(f"summary:count needs a clip from 1, such as summary:count:3; got {self.clip}")

    @property
    def name(self) -> str:
        """Canonical text."""
        return "count" if self.clip is None else f"count:{self.clip}"

    @property
    def bounded(self) -> bool:
        """Whether the counts are clipped."""
        return self.clip is not None

    def start(self) -> Any:
        """No observation."""
        return ()

    def add(self, value: Any, event: Event) -> Any:
        """One more."""
        counts = dict(value)
        seen = counts.get(event.observation, 0) + 1
        counts[event.observation] = seen if self.clip is None else min(seen, self.clip)
        return tuple(sorted(counts.items()))

    def entries(self, value: Any) -> tuple[str, ...]:
        """Observations with their counts."""
        return tuple(f"{observation}={count}" for observation, count in value)


@dataclass(frozen=True)
class Pairs:
    """Which pairs were seen, without order or number."""

    name: str = field(default="pairs", init=False)
    bounded: bool = field(default=True, init=False)

    def start(self) -> Any:
        """None."""
        return ()

    def add(self, value: Any, event: Event) -> Any:
        """The pair among them."""
        return tuple(sorted({*value, (event.action, event.observation)}))

    def entries(self, value: Any) -> tuple[str, ...]:
        """The pairs."""
        return tuple(f"{action}/{observation}" for action, observation in value)


@dataclass(frozen=True)
class Latest:
    """The last observation that each action led to."""

    name: str = field(default="latest", init=False)
    bounded: bool = field(default=True, init=False)

    def start(self) -> Any:
        """None."""
        return ()

    def add(self, value: Any, event: Event) -> Any:
        """The action's observation in place of its last one."""
        return tuple(sorted((dict(value) | {event.action: event.observation}).items()))

    def entries(self, value: Any) -> tuple[str, ...]:
        """Actions with their observations."""
        return tuple(f"{action}/{observation}" for action, observation in value)


@dataclass(frozen=True)
class First:
    """The first `k` >= 0 pairs."""

    k: int
    bounded: bool = field(default=True, init=False)

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"first:{self.k}"

    def start(self) -> Any:
        """None."""
        return ()

    def add(self, value: Any, event: Event) -> Any:
        """The pair, while there is room."""
        return value if len(value) >= self.k else (*value, (event.action, event.observation))

    def entries(self, value: Any) -> tuple[str, ...]:
        """The pairs in order."""
        return tuple(f"{action}/{observation}" for action, observation in value)


@dataclass(frozen=True)
class Parity:
    """Whether the number of pairs that match a pattern is odd."""

    pattern: Pattern = Pattern("*")
    bounded: bool = field(default=True, init=False)

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"parity:{self.pattern.text}"

    def start(self) -> Any:
        """Even."""
        return 0

    def add(self, value: Any, event: Event) -> Any:
        """The other one where the pair matches."""
        return value ^ self.pattern.matches(event)

    def entries(self, value: Any) -> tuple[str, ...]:
        """0 or 1."""
        return (str(int(value)),)


@dataclass(frozen=True)
class Summary:
    """A note of the `statistic` in place of every message; each event is missed with probability `error`.

    Memory: the statistic's value.
    """

    statistic: Statistic
    error: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        if not 0 <= self.error <= 1:
            raise ModelError(
                f"summary needs an error probability in [0, 1], such as summary:count:3:error=1/10; got {self.error}"
            )

    @property
    def name(self) -> str:
        """Canonical text."""
        return f"summary:{self.statistic.name}" + (f":error={self.error}" if self.error else "")

    @property
    def bounded(self) -> bool:
        """Whether the statistic is."""
        return self.statistic.bounded

    def start(self) -> Memory:
        """The empty history's value."""
        return self.statistic.start()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """The event enters the summary and its messages go."""
        return self.statistic.add(memory, event), removed(event, self.name, "summarisation")

    def branches(self, memory: Memory, event: Event) -> Branches:
        """With probability `error` the event goes without entering the summary."""
        following = self.statistic.add(memory, event)
        if following == memory or not self.error:
            return ((following, Fraction(1)),)
        if self.error == 1:
            return ((memory, Fraction(1)),)
        return ((following, 1 - self.error), (memory, self.error))

    def show(self, memory: Memory) -> Context:
        """One note, none where there is nothing to say."""
        entries = self.statistic.entries(memory)
        if not entries:
            return Context(())
        return Context((note(f"{self.statistic.name.partition(':')[0]}({','.join(entries)})", len(entries)),))
