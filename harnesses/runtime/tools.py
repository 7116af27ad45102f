"""Tools: typed functions with schemas, and the dispatcher with its four guarantees; imports schema, child, retry.

Validation before execution, permission before execution, a hard deadline, one shape of result whatever happened: an
invalid call is `error` even where it would be denied too. What is known of a call that was interrupted is asked of its
tool: it may be idempotent, take a key, or recover. Source: M1 §1.2.3, §1.2.5, E1.1.
"""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from harnesses.runtime.child import Outcome, call_here, call_in_child
from harnesses.runtime.clock import Clock, RealClock
from harnesses.runtime.records import AgentError, Status, ToolCall, ToolResult
from harnesses.runtime.retry import Retry
from harnesses.runtime.schema import arguments_model, json_schema, read_arguments

Rule = Callable[[ToolCall], str | None]
"""A permission rule: None to allow a call, else one line that names the rule and what it forbids."""
Journal = Callable[[str, dict[str, Any]], None]
"""Told of every attempt, `started` before and `ended` after it: what a trace and a resumed run need to know."""
KEY = "key"
"""The argument of a keyed tool that the harness gives: the same for every attempt of a call, and for no other call."""


@dataclass(frozen=True)
class Tool:
    """A function that a model may call, from `Tool.of`.

    timeout: seconds per attempt. idempotent: calling twice is the same as once, so that a failure may be retried.
    keyed: the function takes `key: str`, takes effect once for each key and then gives the same answer again, so that
    it may be retried too. recover: asked, with the call's arguments, what became of a call that was interrupted; its
    answer where it took effect, None where it did not. inline: run in this process, for code that is fast or ends by
    its own deadline; its overrun is seen only afterwards. Any other tool runs in a child process, which is killed at
    the deadline.
    """

    name: str
    description: str
    function: Callable[..., Any] = field(compare=False)
    arguments: type[BaseModel] = field(compare=False, repr=False)
    timeout: float
    idempotent: bool
    inline: bool
    keyed: bool = False
    recover: Callable[..., str | None] | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float = 30.0,
        idempotent: bool = False,
        inline: bool = False,
        keyed: bool = False,
        recover: Callable[..., str | None] | None = None,
    ) -> Tool:
        """The tool that a typed function is; its name and the first paragraph of its docstring unless given.

        AgentError for a missing type or description, a timeout that is not positive, a keyed function without a key,
        or a function that a child process cannot import.
        """
        called = str(name or getattr(function, "__name__", ""))
        if not called.isidentifier():
            raise AgentError(f"a tool needs a name such as read_file; got {called!r}")
        said = description or " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
        if not said:
            raise AgentError(f"tool {called} has no description; give its function a docstring of one line")
        if not 0 < timeout < float("inf"):
            raise AgentError(f"tool {called}: the timeout {timeout!r} is no number of seconds such as 30")
        if keyed and KEY not in inspect.signature(function).parameters:
            raise AgentError(f"tool {called} takes no key; a keyed function has an argument `{KEY}: str`")
        if not inline:
            _require_importable(function, called)
        arguments = arguments_model(function, called, (KEY,) if keyed else ())
        return cls(called, said, function, arguments, timeout, idempotent, inline, keyed, recover)

    @property
    def repeatable(self) -> bool:
        """Whether an attempt may be made again."""
        return self.idempotent or self.keyed

    @property
    def schema(self) -> dict[str, Any]:
        """Name, description and JSON schema of the arguments: what a model is shown. Source: M1 §1.2.3."""
        return {"name": self.name, "description": self.description, "parameters": json_schema(self.arguments)}


class Dispatcher:
    """Turns calls into results; nothing reaches a tool's function but a valid and permitted call.

    permissions: for every tool its rules, none to allow every call. AgentError where a tool has no entry or two
    tools have one name.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        permissions: Mapping[str, Sequence[Rule]],
        clock: Clock | None = None,
        retry: Retry | None = None,
    ) -> None:
        given = tuple(tools)
        self.tools = {tool.name: tool for tool in given}
        self.permissions = {name: tuple(rules) for name, rules in permissions.items()}
        self.clock: Clock = RealClock() if clock is None else clock
        self.retry = Retry() if retry is None else retry
        if len(self.tools) < len(given):
            raise AgentError(f"two tools have one name: {', '.join(tool.name for tool in given)}")
        for name in self.tools.keys() ^ self.permissions.keys():
            if name in self.tools:
                raise AgentError(f"tool {name} has no permission rules; give {{{name!r}: ()}} to allow all")
            raise AgentError(f"permission rules for {name}, which is no tool: {', '.join(self.tools)}")

    @cached_property
    def schemas(self) -> list[dict[str, Any]]:
        """The schemas of all tools, in their order."""
        return [tool.schema for tool in self.tools.values()]

    def schema_tokens(self, count: Callable[[str], int]) -> int:
        """What the schemas cost in every context. Source: M1 §1.2.3."""
        return count(json.dumps(self.schemas, separators=(",", ":"))) if self.tools else 0

    def dispatch(self, call: ToolCall, journal: Journal | None = None, run: str = "") -> ToolResult:
        """The one result of a call: validate, ask permission, execute with a deadline, retry where allowed.

        run: what tells this run from all others; with the call's id it is the key of a keyed tool.
        """
        checked = self.check(call)
        if isinstance(checked, ToolResult):
            return checked
        tool = self.tools[call.name]
        if tool.keyed:
            checked[KEY] = f"{run}/{call.id}"
        return self._execute(tool, call, checked, journal or (lambda kind, data: None))

    def check(self, call: ToolCall) -> ToolResult | dict[str, Any]:
        """The arguments as the function takes them, or the result of a call that must not be executed."""
        tool = self.tools.get(call.name)
        if tool is None:
            return refusal(call, "error", f"unknown tool: {call.name}; the tools are {', '.join(self.tools)}")
        try:
            arguments = read_arguments(tool.arguments, call.arguments)
        except AgentError as error:
            return refusal(call, "error", str(error))
        for rule in self.permissions[tool.name]:
            try:
                reason = rule(call)
            except Exception as error:  # a rule that fails has not allowed the call
                reason = f"its permission rule failed: {type(error).__name__}: {error}"
            if reason is not None:
                return refusal(call, "denied", clean(reason))
        return arguments

    def _execute(self, tool: Tool, call: ToolCall, arguments: dict[str, Any], journal: Journal) -> ToolResult:
        """Attempts until one is not a passing failure, or the retries are spent."""
        began = self.clock.now()
        number = 1
        while True:
            journal("started", {"call_id": call.id, "attempt": number})
            at = self.clock.now()
            kind, content = self._attempt(tool, arguments)
            wait = self.retry.wait(number) if tool.repeatable and kind in ("timeout", "transient") else None
            status: Status = "error" if kind == "transient" else kind
            took = max(0.0, self.clock.now() - at)
            outcome = {"status": status, "content": content, "duration": took, "wait": wait}
            journal("ended", {"call_id": call.id, "attempt": number, **outcome})
            if wait is None:
                return ToolResult(call.id, status, content, max(0.0, self.clock.now() - began))
            self.clock.sleep(wait)
            number += 1

    def _attempt(self, tool: Tool, arguments: dict[str, Any]) -> Outcome:
        if not tool.inline:
            kind, content = call_in_child(tool.function, arguments, tool.timeout)
            return Outcome(kind, clean(content))
        began = self.clock.now()
        kind, content = call_here(tool.function, arguments)
        took = self.clock.now() - began
        if took > tool.timeout:
            return Outcome("timeout", f"took {took:g} s, more than the {tool.timeout:g} s that it has")
        return Outcome(kind, clean(content))


def refusal(call: ToolCall, status: Status, content: str) -> ToolResult:
    """The result of a call that was not executed."""
    return ToolResult(call.id, status, content, 0.0)


def clean(text: str) -> str:
    """The text without lone surrogates, which no file and no provider takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _require_importable(function: Callable[..., Any], name: str) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:
        raise AgentError(
            f"tool {name} cannot run in a child process, which has to import it ({error}); "
            "define it in a module, or pass inline=True if it is fast or ends by itself"
        ) from None
