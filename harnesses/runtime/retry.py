"""Retry: how often and how long to wait after a failure that may pass; imports records.

Source: M1 §1.2.5 (bounded exponential backoff, at most r times, for timeouts and rate limits alone).
"""

from __future__ import annotations

from dataclasses import dataclass

from harnesses.runtime.records import AgentError


@dataclass(frozen=True)
class Retry:
    """At most `limit` further attempts after waits of `first`, 2 `first`, 4 `first`, ... <= `longest` seconds."""

    limit: int = 2
    first: float = 1.0
    longest: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what is no number of retries or no wait."""
        if not isinstance(self.limit, int) or isinstance(self.limit, bool) or self.limit < 0:
            raise AgentError(f"retries are a whole number from 0, such as 2; got {self.limit!r}")
        if not 0 <= self.first <= self.longest < float("inf"):
            raise AgentError(
                f"waits grow from first to longest, such as 1 and 30 s; got {self.first!r} and {self.longest!r}"
            )

    def wait(self, attempt: int) -> float | None:
        """Seconds to wait after the failure of this attempt, counted from 1; None when no further one is left."""
        return None if attempt > self.limit else min(self.first * 2.0 ** (attempt - 1), self.longest)
