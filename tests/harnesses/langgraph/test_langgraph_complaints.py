"""What plain LangGraph was measured to do about the twelve complaints holds for the versions that are installed."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
STORED = json.loads((ROOT / "results/runtime/langgraph_complaints.json").read_text())


def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location(
        "langgraph_complaints", ROOT / "benchmarks/langgraph_complaints.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BENCHMARK = benchmark()
RATES = {row["complaint"]: row for row in STORED["complaints"]}


def test_the_stored_measurement_is_of_the_installed_versions_and_of_all_complaints() -> None:
    installed = {name: BENCHMARK.version(name) for name in BENCHMARK.PACKAGES}
    assert STORED["versions"] == installed, "measure again: benchmarks/langgraph_complaints.py --json"
    assert [row["complaint"] for row in STORED["complaints"]] == [c.name for c in BENCHMARK.COMPLAINTS]
    assert {int(name.split()[0].rstrip("b")) for name in RATES} == set(range(1, 13))


@pytest.mark.parametrize("complaint", [c for c in BENCHMARK.COMPLAINTS if c.run], ids=lambda c: c.name)
def test_what_always_or_never_happened_does_so_again(complaint: Any) -> None:
    rate = RATES[complaint.name]
    found = complaint.run(0)
    if rate["fails"] in (0, rate["of"]):
        assert found == (rate["fails"] == rate["of"])
    else:
        assert 0 < rate["fails"] < rate["of"]
