"""The parts of a harness whose value the study harness_or_model asks for. Imports nothing of the project.

Each part stands beside the harness without it, on repository repair. Sources: M1 §1.2.4, §1.2.5, §1.4.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TASK = "library:repo_repair"
HORIZON = 5
BUGS = ("0-0", "0-1", "1-0", "1-1")
# A reviewer reads every patch for 1/50 and turns it down where the bug is another.
REVIEWER = tuple(
    f"gate:patch-{bug}:{','.join(f'bug-{other}' for other in BUGS if other != bug)}:1/50" for bug in BUGS
)
SLOW = "timeout:run-tests:1/2"


@dataclass(frozen=True)
class Arm:
    """A harness as a spec writes it."""

    context: str | tuple[str, ...]
    tools: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    loop: tuple[str, ...] = ()

    def spec(self, horizon: int, model: str) -> Mapping[str, Any]:
        """The spec of this harness and a model on repository repair."""
        context = self.context if isinstance(self.context, str) else list(self.context)
        return {
            "task": TASK,
            "horizon": horizon,
            "model": model,
            "tools": list(self.tools),
            "control": list(self.control),
            "loop": list(self.loop),
            "context": context,
        }


# part -> (without it, with it)
PARTS = {
    "wider window": (Arm("last:1"), Arm("last:2")),
    "pinned tests": (Arm("last:1"), Arm("pin:run-tests/*:last:1")),
    "full output": (
        Arm("last:2", tools=("coarsen:run-tests>failed=fails-in-0|fails-in-1|error",)),
        Arm("last:2"),
    ),
    "retry": (Arm("last:2", control=(SLOW,)), Arm("last:2", control=(SLOW, "retry:run-tests:1:1/20"))),
    "error shown": (
        Arm("last:2", loop=("malformed:1/5:0:hidden",)),
        Arm("last:2", loop=("malformed:1/5",)),
    ),
    "stall guard": (Arm("last:2", control=(SLOW,)), Arm("last:2", control=(SLOW, "stall:1:2"))),
    "step limit": (Arm("last:2"), Arm("last:2", control=("step_limit:4",))),
    "reviewer": (Arm("last:2"), Arm("last:2", control=REVIEWER)),
}
