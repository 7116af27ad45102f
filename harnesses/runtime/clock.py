"""Clock: what a run asks for the time and waits on, real or virtual; imports nothing of the project."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Seconds from some fixed moment, never backwards."""

    def now(self) -> float:
        """The time in seconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


@dataclass(frozen=True)
class RealClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Seconds since the machine started."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass
class VirtualClock:
    """A clock that stands still except when someone sleeps: waits cost nothing and runs repeat exactly."""

    time: float = 0.0

    def now(self) -> float:
        """The sum of all sleeps."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.time += seconds
