"""Cells: specs over tasks, context maps and controls in which every pair of levels occurs; imports spec.

A pairwise cover: about as many cells as the two largest factors multiply to, instead of all combinations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

from harnesses.spec import Spec, parse_spec
from pomdp.library import task

# Long enough for every control to bite, short enough for the induced POMDP of every map.
HORIZONS = {"tiger": 5, "tmaze:4": 5, "flip:2": 4, "repo_repair": 4, "ticket_routing": 4, "drift": 5}
MAPS = (
    "last:1",
    "last_messages:3",
    "oldest_first:60",
    "pin:{first}/*:last:1",
    "summary:count:2",
    "counter:last:1",
    "compose:results:last:2",
)
CONTROLS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "failures": {"control": ["timeout:*:1/5"], "loop": ["malformed:3/20:1/20"]},
    "denied": {"control": ["timeout:*:1/10", "deny:{last}:1/5"]},
    "budget": {"control": ["call_budget:2"], "loop": ["malformed:1/10"]},
    "stall": {"control": ["timeout:*:1/10", "stall:2-3"], "loop": ["malformed:1/10"]},
    "total": {"control": ["stall:2-3:total", "step_limit:4"]},
    "unknown": {"tools": ["select:{first}"], "control": ["call_budget:3"], "model": "naive:inf"},
}
FACTORS: tuple[tuple[str, ...], ...] = (tuple(HORIZONS), MAPS, tuple(CONTROLS))


def cover(factors: Sequence[Sequence[str]] = FACTORS) -> list[tuple[str, ...]]:
    """Combinations in which every pair of levels of two factors occurs: greedily the one with most new pairs."""
    every = list(product(*factors))
    left = {pair for row in every for pair in _pairs(row)}
    chosen = []
    while left:
        best = max(every, key=lambda row: len(left & _pairs(row)))
        chosen.append(best)
        left -= _pairs(best)
    return chosen


def _pairs(row: Sequence[str]) -> set[tuple[int, str, int, str]]:
    return {(i, row[i], j, row[j]) for i, j in combinations(range(len(row)), 2)}


def every_cell() -> list[tuple[str, ...]]:
    """All combinations."""
    return list(product(*FACTORS))


def cell(name: str, phi: str, control: str) -> Spec:
    """The spec of a combination: the policy is random, or a naive reader so warm that it tries everything alike."""
    actions = task(name).model.actions
    words = {"first": actions[0], "last": actions[-1]}
    parts = {
        key: [text.format(**words) for text in value] if isinstance(value, list) else value
        for key, value in CONTROLS[control].items()
    }
    data = {"task": f"library:{name}", "horizon": HORIZONS[name], "model": "random"}
    return parse_spec({**data, "context": phi.format(**words), **parts}, Path())
