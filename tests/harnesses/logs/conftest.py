"""The shared agent traces, and hand-made records of every format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of agent logs by other authors; the test is skipped where the files are not at hand."""
    folder = Path(os.environ.get("HPOMDP_BENCHMARKS", ROOT.parent / "shared" / "benchmarks")) / "traces"
    if not folder.is_dir():
        pytest.skip(f"no agent traces at {folder}; name their parent folder in HPOMDP_BENCHMARKS")
    return folder


def chat(call: dict[str, Any], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """System prompt, request, a call with its answer, and a last word."""
    return [
        {"role": "system", "content": "s" * 40},
        {"role": "user", "content": "u" * 20},
        {"role": "assistant", "content": "think", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "k1", **answer},
        {"role": "assistant", "content": "done"},
    ]


def made() -> dict[str, dict[str, Any]]:
    """A small record of each format: one failing call `look(at="a")` whose answer has 10 to 40 characters."""
    arguments = json.dumps({"at": "a"})
    nested = {"id": "k1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    flat = {"id": "k1", "name": "look", "arguments": arguments}
    dojo = {"function": "look", "args": {"at": "a"}, "id": "k1", "placeholder_args": None}
    graph = {"id": "k1", "name": "look", "args": {"at": "a"}}
    swe = [
        {"role": "system", "content": "s" * 40, "agent": "main"},
        {"role": "user", "content": "u" * 20, "agent": "main"},
        {"role": "assistant", "content": "think\n```\nlook a\n```", "action": "look a\n", "agent": "main"},
        {"role": "user", "content": "EXECUTION TIMED OUT", "agent": "main"},
        {"role": "assistant", "content": "```\nsubmit\n```", "action": "submit\n", "agent": "main"},
    ]
    return {
        "tau-bench": {
            "task_id": 3,
            "trial": 1,
            "reward": 1.0,
            "traj": chat(nested, {"name": "look", "content": "Error: nothing there"}),
        },
        "AgentDojo": {
            "suite_name": "banking",
            "pipeline_name": "guard1",
            "user_task_id": "user_task_0",
            "injection_task_id": "injection_task_1",
            "messages": chat(
                dojo, {"content": [{"type": "text", "content": ""}], "error": "denied: rule R1"}
            ),
            "utility": True,
            "security": False,
        },
        "mini-swe-agent": {
            "instance_id": "a__b-1",
            "run": "first",
            "trajectory_format": "mini-swe-agent-1.1",
            "info": {"exit_status": "Submitted"},
            "messages": chat(flat, {"content": "no such file", "extra": {"returncode": 1}})
            + [{"role": "exit", "content": "diff"}],
            "resolved": False,
        },
        "SWE-agent": {
            "history": swe,
            "trajectory": [
                {"action": "look a\n", "observation": "EXECUTION TIMED OUT", "response": "think"},
                {"action": "submit\n", "observation": "diff --git", "response": "submit"},
            ],
            "info": {"exit_status": "submitted"},
        },
        "LangGraph checkpoints": {
            "thread_id": "e0",
            "case": {"id": 0, "injected": True},
            "history_newest_first": [
                {
                    "next": [],
                    "interrupts": [],
                    "values": {
                        "actions": ["approved:k1", "sent:k1"],
                        "messages": chat(graph, {"content": "error: denied by reviewer"}),
                    },
                },
                {"next": ["agent"], "interrupts": [{"value": 1}], "values": {}},
            ],
        },
    }


@pytest.fixture(scope="session")
def make_logs() -> Callable[[], dict[str, dict[str, Any]]]:
    """The function `made`."""
    return made


@pytest.fixture
def small_logs() -> dict[str, dict[str, Any]]:
    """`made`, anew for each test."""
    return made()
