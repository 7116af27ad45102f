"""A small harness that counts what reaches its tools, on a virtual clock; shared by the tests of the runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from harnesses.context import OldestFirst
from harnesses.runtime.child import Transient
from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.control import Limits, Matches
from harnesses.runtime.loop import Harness, run
from harnesses.runtime.models import ScriptedModel
from harnesses.runtime.records import Run
from harnesses.runtime.retry import Retry
from harnesses.runtime.tools import Dispatcher, Tool
from harnesses.runtime.trace import MemoryTrace, Replay, replay


@dataclass
class Bench:
    """Four tools, what reached them, and a way to run a script over them."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    trace: MemoryTrace = field(default_factory=MemoryTrace)
    executed: Counter[str] = field(default_factory=Counter)
    flaky_failures: int = 0

    def read(self, path: str, mode: Literal["text", "lines"] = "text") -> str:
        """Read a file."""
        self.executed["read"] += 1
        return f"{path}:{mode}:" + "x" * (60 * len(path))

    def slow(self, seconds: float) -> str:
        """Take that long."""
        self.executed["slow"] += 1
        self.clock.sleep(seconds)
        return "at last"

    def broken(self) -> str:
        """Raise."""
        self.executed["broken"] += 1
        raise KeyError("a part is missing")

    def flaky(self) -> str:
        """Fail as often as told, then work."""
        self.executed["flaky"] += 1
        if self.executed["flaky"] <= self.flaky_failures:
            raise Transient("rate limit")
        return "works"

    def harness(self, lines: Any, phi: Any = None, **fields: Any) -> Harness:
        """The harness of a script."""
        retry = fields.pop("retry", Retry(limit=2, first=1.0))
        idempotent = fields.pop("idempotent", True)
        tools = [
            Tool.of(self.read, inline=True, idempotent=True),
            Tool.of(self.slow, inline=True, timeout=5.0),
            Tool.of(self.broken, inline=True, idempotent=True),
            Tool.of(self.flaky, inline=True, idempotent=idempotent),
        ]
        rules = {"read": (Matches("path", ("*.py",)),), "slow": (), "broken": (), "flaky": ()}
        dispatcher = Dispatcher(tools, rules, self.clock, retry)
        model = lines if hasattr(lines, "reply") else ScriptedModel(lines)
        fields = {"limits": Limits(consecutive_errors=None), "trace": self.trace} | fields
        return Harness(model, dispatcher, phi or OldestFirst(10**6), **fields)

    def run(self, lines: Any, phi: Any = None, **fields: Any) -> Run:
        """Run a script to its end."""
        return run(self.harness(lines, phi, **fields), "Do it.", "Be brief.")

    def replayed(self) -> Replay:
        """What the trace of the run says."""
        return replay(self.trace.lines)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def make_bench() -> Callable[[], Bench]:
    """For tests that run many examples, each on a bench of its own."""
    return Bench
