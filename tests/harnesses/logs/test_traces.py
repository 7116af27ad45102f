"""What `hpomdp logs` finds in the shared traces, against their README and a recount over the raw JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import main

BUDGETS = (2000, 4000, 8000, 16000)
FOLDERS = ("tau_bench", "mini_swe_agent", "swe_agent", "agentdojo_scripted", "langgraph_checkpoints")


@pytest.fixture(scope="module")
def found(traces: Path) -> dict[str, Any]:
    """The command's own JSON over all traces, at the four budgets."""
    import contextlib
    import io

    maps = [word for budget in BUDGETS for word in ("--map", f"oldest_first:{budget}")]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["logs", str(traces), "--json", *maps]) == 0
    return json.loads(out.getvalue())


def groups(found: dict[str, Any], folder: str) -> list[dict[str, Any]]:
    return [group for group in found["groups"] if group["folder"] == folder]


def sentence(traces: Path, name: str) -> str:
    """The line of the README's counts that begins with this name."""
    lines = (traces / "README.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"- {name}:"))


def test_every_count_of_the_readme_is_found(traces: Path, found: dict[str, Any]) -> None:
    (tau,), (mini,) = groups(found, "tau_bench"), groups(found, "mini_swe_agent")
    (swe,), (graph,) = groups(found, "swe_agent"), groups(found, "langgraph_checkpoints")
    assert sentence(traces, "tau_bench") == (
        f"- tau_bench: {tau['runs']} runs over {tau['tasks']} tasks, reward 1 in {tau['successes']}"
    )
    assert sentence(traces, "mini_swe_agent") == (
        f"- mini_swe_agent: {mini['runs']} runs over {mini['tasks']} instances, resolved {mini['successes']}"
    )
    assert sentence(traces, "swe_agent") == f"- swe_agent: {swe['files']} files"
    actions = {
        name.removeprefix("action "): count
        for name, count in graph["counts"].items()
        if name.startswith("action ")
    }
    ranked = dict(sorted(actions.items(), key=lambda item: -item[1]))
    assert sentence(traces, "langgraph") == (
        f"- langgraph: {graph['runs']} threads, {graph['counts']['checkpoints']} checkpoints, "
        f"actions {ranked}, injected cases {graph['injections']['attempted']}"
    )


def test_every_count_of_the_readme_on_injections_is_found(traces: Path, found: dict[str, Any]) -> None:
    by_setting = {group["setting"]: group["injections"] for group in groups(found, "agentdojo_scripted")}
    assert len(by_setting) == 4
    for setting, counts in by_setting.items():
        suite, guard = re.fullmatch(r"(\w+) .*(guard\d)", setting).groups()  # type: ignore[union-attr]
        assert sentence(traces, f"agentdojo {suite} {guard}") == (
            f"- agentdojo {suite} {guard}: {counts['attempted']} runs, utility {counts['utility']}, "
            f"attack succeeded {counts['carried_out']}, runs with a denial {counts['runs_with_denial']}"
        )


def test_nothing_of_the_traces_is_broken_or_left_out(traces: Path, found: dict[str, Any]) -> None:
    lines = sum(len(f.read_text("utf-8").splitlines()) for f in traces.rglob("*.jsonl"))
    assert found["broken"] == 0
    assert len(found["runs"]) == lines + len(list(traces.rglob("*.traj")))
    assert {Path(entry["file"]).suffix for entry in found["no_logs"]} == {".md", ".txt"}


# The recount: sizes of what follows the first reply, as ("result" or "other", tokens), straight from the files.


def size(text: str | None) -> int:
    return math.ceil(len(text or "") / 4)


def call_size(name: str, arguments: Any) -> int:
    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    return size(json.dumps({"name": name, "arguments": given}, separators=(",", ":")))


def tau(line: dict[str, Any]) -> Iterator[tuple[str, int]]:
    replied = False
    for message in line["traj"]:
        replied = replied or message["role"] == "assistant"
        if replied:
            yield ("result" if message["role"] == "tool" else "other"), size(message["content"])
            for call in message.get("tool_calls") or []:
                yield "other", call_size(call["function"]["name"], call["function"]["arguments"])


def mini(line: dict[str, Any]) -> Iterator[tuple[str, int]]:
    usage = [m["extra"]["usage"] for m in line["messages"] if m["role"] == "assistant"]
    for now, following in zip(usage, usage[1:]):
        yield "other", now["completion_tokens"]
        yield "result", following["prompt_tokens"] - now["prompt_tokens"] - now["completion_tokens"]
    yield "other", usage[-1]["completion_tokens"]


def swe(data: dict[str, Any]) -> Iterator[tuple[str, int]]:
    history = data["history"]
    first = [message["role"] for message in history].index("assistant")
    for message in history[first:]:
        yield (
            ("other" if message["role"] == "assistant" else "result"),
            size(
                "".join(block["text"] for block in message["content"])
                if isinstance(message["content"], list)
                else message["content"]
            ),
        )
        for call in message.get("tool_calls") or []:
            yield "other", call_size(call["function"]["name"], call["function"]["arguments"])
    if history[-1]["role"] == "assistant":
        yield "result", size(data["trajectory"][-1]["observation"])


def dojo(line: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for message in line["messages"][2:]:
        text = "".join(block["content"] for block in message["content"])
        if message["role"] == "tool":
            yield "result", size(message["error"] or text)
        else:
            yield "other", size(text)
            for call in message["tool_calls"] or []:
                yield "other", call_size(call["function"], call["args"])


def graph(line: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for message in line["history_newest_first"][0]["values"]["messages"][1:]:
        yield ("result" if message["role"] == "tool" else "other"), size(message.get("content"))
        for call in message.get("tool_calls") or []:
            yield "other", call_size(call["name"], call["args"])


WALKS = dict(zip(FOLDERS, (tau, mini, swe, dojo, graph), strict=True))


def raw_runs(folder: Path) -> Iterator[Any]:
    for file in sorted(folder.iterdir()):
        text = file.read_text("utf-8")
        yield from [json.loads(text)] if file.suffix == ".traj" else map(json.loads, text.splitlines())


def trim(walk: list[tuple[str, int]], budget: int) -> tuple[int, int]:
    """How many results go, oldest first, and their tokens: a stub of 4 stays for each, smaller ones are no gain."""
    total = sum(tokens for _, tokens in walk)
    count = tokens_gone = 0
    for what, tokens in walk:
        if total > budget and what == "result" and tokens > 4:
            total -= tokens - 4
            count, tokens_gone = count + 1, tokens_gone + tokens
    return count, tokens_gone


@pytest.mark.parametrize("folder", FOLDERS)
def test_shares_touched_and_dropped_equal_a_plain_recount(
    traces: Path, found: dict[str, Any], folder: str
) -> None:
    walks = [list(WALKS[folder](raw)) for raw in raw_runs(traces / folder)]
    reported = [run for run in found["runs"] if run["folder"] == folder]
    assert len(walks) == len(reported)
    results = sum(what == "result" for walk in walks for what, _ in walk)
    all_tokens = sum(tokens for walk in walks for what, tokens in walk if what == "result")
    for i, budget in enumerate(BUDGETS):
        counted = [trim(walk, budget) for walk in walks]
        own = [run["maps"][i] for run in reported]
        assert [(m["results_dropped"], m["result_tokens_dropped"]) for m in own] == counted
        of_groups = [group["maps"][i] for group in groups(found, folder)]
        assert {m["map"] for m in of_groups} == {f"oldest_first:{budget}"}
        touched = sum(m["runs_touched"] for m in of_groups)
        assert touched == sum(count > 0 for count, _ in counted)
        assert sum(m["results_dropped"] for m in of_groups) == sum(count for count, _ in counted)
        assert sum(m["result_tokens_dropped"] for m in of_groups) == sum(tokens for _, tokens in counted)
        assert sum(m["results"] for m in of_groups) == results
        assert sum(m["result_tokens"] for m in of_groups) == all_tokens
        if len(of_groups) == 1:
            assert of_groups[0]["share_touched"] == touched / len(walks)
            assert of_groups[0]["share_dropped"] == sum(count for count, _ in counted) / results


def test_trimming_at_8000_touches_no_airline_run_and_almost_every_coding_result(
    found: dict[str, Any],
) -> None:
    (tau_bench,), (coding,) = groups(found, "tau_bench"), groups(found, "mini_swe_agent")
    assert tau_bench["maps"][2]["runs_touched"] == 0
    assert coding["maps"][2]["share_dropped"] > 0.9


def test_no_coding_run_repeats_a_call_three_times_in_a_row_yet_some_three_times_in_all(
    traces: Path, found: dict[str, Any]
) -> None:
    (group,) = groups(found, "mini_swe_agent")
    totals = rows = 0
    for line in raw_runs(traces / "mini_swe_agent"):
        calls = [
            call["arguments"] for message in line["messages"] for call in message.get("tool_calls") or []
        ]
        totals += any(calls.count(call) >= 3 for call in calls)
        rows += any(a == b == c for a, b, c in zip(calls, calls[1:], calls[2:]))
    assert (group["runs_stalled"]["consecutive"], group["runs_stalled"]["total"]) == (rows, totals)
    assert rows == 0 < totals
