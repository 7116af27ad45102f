"""The commands of this package, and `simulate` for a SPEC.toml; the files named cli_* hold one each."""

from __future__ import annotations

from typing import Any

from harnesses.cli_agent import add_agent
from harnesses.cli_attribute import add_attribute
from harnesses.cli_conform import add_conform
from harnesses.cli_context import add_context
from harnesses.cli_describe import add_describe, spec_first
from harnesses.cli_desk import add_desk
from harnesses.cli_guard import add_guard
from harnesses.cli_logs import add_logs
from harnesses.cli_memo import add_memo


def add_commands(subparsers: Any) -> None:
    """Add this package's commands; each sets `handler`, a function of its arguments giving the exit code."""
    add_context(subparsers)
    add_attribute(subparsers)
    add_describe(subparsers)
    add_memo(subparsers)
    add_guard(subparsers)
    add_agent(subparsers)
    add_logs(subparsers)
    add_conform(subparsers)
    add_desk(subparsers)
    simulate = subparsers.choices.get("simulate")
    if simulate is not None:
        simulate.set_defaults(handler=spec_first(simulate.get_default("handler")))
