"""What plain LangGraph was measured to do about the twelve complaints holds for the versions that are installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
STORED = json.loads((ROOT / "results/runtime/langgraph_complaints.json").read_text())


@pytest.fixture(scope="module")
def again() -> Any:
    """One run of each, in a process of its own, for some of them fork."""
    command = [sys.executable, "benchmarks/langgraph_complaints.py", "--repeats", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_always_or_never_happened_does_so_again(again: Any) -> None:
    assert again["versions"] == STORED["versions"], "measure again: benchmarks/langgraph_complaints.py --json"
    for before, now in zip(STORED["complaints"], again["complaints"], strict=True):
        assert before["complaint"] == now["complaint"]
        if before["fails"] is None:
            assert now["fails"] is None
        elif before["fails"] in (0, before["of"]):
            assert now["fails"] == (before["fails"] == before["of"]), now["complaint"]
        else:
            assert 0 < before["fails"] < before["of"]


def test_all_twelve_are_there() -> None:
    numbers = {int(row["complaint"].split()[0].rstrip("b")) for row in STORED["complaints"]}
    assert numbers == set(range(1, 13))
