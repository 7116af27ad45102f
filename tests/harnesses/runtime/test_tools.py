"""Tools: schemas from types, refusals at the door, deadlines that kill, results of one shape."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Literal

import pytest

from harnesses.runtime.records import AgentError, ToolCall
from harnesses.runtime.tools import Dispatcher, Tool
from harnesses.runtime.workspace import Workspace


def plan(
    path: str, mode: Literal["r", "w"], lines: list[int], schema: int = 3, *, _x: float | None = None
) -> str:
    """Plan a change.

    More that no model needs.
    """
    return json.dumps([path, mode, lines, schema, _x])


def sleep_long() -> str:
    """Sleep."""
    time.sleep(60)
    return "awake"


def own_process() -> int:
    """The number of the process."""
    print("noise on the output")
    return os.getpid()


def die() -> str:
    """End the process."""
    os._exit(3)


def quit_early() -> str:
    """Leave."""
    raise SystemExit("bye")


def no_json() -> Any:
    """Give something that JSON cannot carry."""
    return {1, 2}


def surrogate() -> str:
    """Half a character."""
    return "a\ud800b"


def dispatch(function: Any, arguments: dict[str, Any] | None = None, **fields: Any) -> Any:
    tool = Tool.of(function, **fields)
    return Dispatcher([tool], {tool.name: ()}).dispatch(ToolCall("c1", tool.name, arguments or {}))


def test_the_schema_says_types_required_arguments_and_enumerations() -> None:
    schema = Tool.of(plan, inline=True).schema
    assert schema["name"] == "plan" and schema["description"] == "Plan a change."
    parameters = schema["parameters"]
    assert parameters["required"] == ["path", "mode", "lines"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["mode"]["enum"] == ["r", "w"]
    assert parameters["properties"]["schema"] == {"default": 3, "type": "integer"}
    assert "title" not in json.dumps(schema)


VALID = [
    {"path": "a", "mode": "r", "lines": [1]},
    {"path": "a", "mode": "w", "lines": [], "schema": 4, "_x": 0.5},
    {"path": "a", "mode": "w", "lines": [], "_x": None},
]
INVALID = [
    ({"path": "a", "mode": "x", "lines": [1]}, "mode"),
    ({"path": "a", "mode": "r", "lines": ["1"]}, "lines.0"),
    ({"path": "a", "mode": "r", "lines": [True]}, "lines.0"),
    ({"path": "a", "mode": "r", "lines": {}}, "lines"),
    ({"path": None, "mode": "r", "lines": []}, "path"),
    ({"path": "a", "mode": "r"}, "missing required argument: lines"),
    ({"path": "a", "mode": "r", "lines": [], "extra": 1}, "unexpected argument: extra"),
    ({"path": "a", "mode": "r", "lines": [], "schema": "4"}, "schema"),
    ({}, "missing required argument: path; missing required argument: mode"),
]


@pytest.mark.parametrize("arguments", VALID)
def test_valid_arguments_reach_the_function_unchanged(arguments: dict[str, Any]) -> None:
    a, result = arguments, dispatch(plan, arguments, inline=True)
    assert json.loads(result.content) == [a["path"], a["mode"], a["lines"], a.get("schema", 3), a.get("_x")]


@pytest.mark.parametrize(("arguments", "named"), INVALID)
def test_an_invalid_call_is_told_which_argument_is_wrong(arguments: dict[str, Any], named: str) -> None:
    result = dispatch(plan, arguments, inline=True)
    assert result.status == "error" and named in result.content and "\n" not in result.content


def test_a_tool_that_hangs_is_killed_at_its_deadline() -> None:
    began = time.monotonic()
    result = dispatch(sleep_long, timeout=0.7)
    assert result.status == "timeout" and time.monotonic() - began < 10
    assert result.duration >= 0.7


def test_a_tool_in_a_child_answers_from_another_process() -> None:
    result = dispatch(own_process)
    assert result.status == "ok" and int(result.content) != os.getpid()
    assert int(dispatch(own_process, inline=True).content) == os.getpid()


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(("function", "says"), [(quit_early, "bye"), (no_json, "JSON")])
def test_a_tool_cannot_end_the_run(function: Any, says: str, inline: bool) -> None:
    result = dispatch(function, inline=inline)
    assert result.status == "error" and says in result.content


def test_a_tool_that_ends_its_process_is_an_error() -> None:
    result = dispatch(die)
    assert result.status == "error" and "3" in result.content


@pytest.mark.parametrize("inline", [True, False])
def test_half_characters_are_replaced(inline: bool) -> None:
    assert dispatch(surrogate, inline=inline).content == "a?b"


def test_a_rule_that_fails_denies() -> None:
    def rule(call: ToolCall) -> str | None:
        raise OSError("no such folder")

    result = Dispatcher([Tool.of(own_process, inline=True)], {"own_process": (rule,)}).dispatch(
        ToolCall("c1", "own_process", {})
    )
    assert result.status == "denied" and "no such folder" in result.content


def untyped(path) -> str:  # type: ignore[no-untyped-def]
    """Read."""
    return path


def undocumented(path: str) -> str:
    return path


def starred(*paths: str) -> str:
    """Read."""
    return ""


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Tool.of(untyped, inline=True), "path has no type; write `path: str`"),
        (lambda: Tool.of(undocumented, inline=True), "no description"),
        (lambda: Tool.of(starred, inline=True), "no name of its own"),
        (lambda: Tool.of(plan, timeout=0.0, inline=True), "timeout"),
        (lambda: Tool.of(lambda: "x", description="x", name="x"), "inline=True"),
        (lambda: Tool.of(lambda: "x", description="x"), "a tool needs a name"),
        (lambda: Dispatcher([Tool.of(plan, inline=True)], {}), "no permission rules"),
        (lambda: Dispatcher([], {"plan": ()}), "no tool"),
        (lambda: Dispatcher([Tool.of(plan, inline=True)] * 2, {"plan": ()}), "one name"),
    ],
)
def test_what_is_no_tool_is_refused_at_the_door(make: Any, says: str) -> None:
    with pytest.raises(AgentError, match=says):
        make()


def test_schemas_cost_tokens() -> None:
    def size(text: str) -> int:
        return len(text)

    tool = Tool.of(plan, inline=True)
    expected = len(json.dumps([tool.schema], separators=(",", ":")))
    assert Dispatcher([tool], {"plan": ()}).schema_tokens(size) == expected
    assert Dispatcher([], {}).schema_tokens(size) == 0


@pytest.mark.parametrize("inline", [True, False])
def test_what_only_the_tool_can_see_to_lie_outside_is_denied_too(inline: bool, tmp_path: Path) -> None:
    """A file that has become a link since the permission rule looked: the path is opened without following it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "in" / "a.py").symlink_to(tmp_path / "secret")
    tool = Tool.of(Workspace.at(tmp_path / "in").read_file, inline=inline)
    found = Dispatcher([tool], {"read_file": ()}).dispatch(ToolCall("c1", "read_file", {"path": "a.py"}))
    assert found.status == "denied" and "link" in found.content
