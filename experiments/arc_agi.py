"""ARC-AGI and kin: published scores of one model alone and in a harness, and what a solved task costs; imports nothing.

Data as M14 §1 prints them ("read from its reports and leaderboard on 2026-10-06"); this module adds no number of its
own. A score belongs to a model, a harness and a compute budget together: M14 §1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TASKS = 120
"""Tasks in ARC-AGI-2's evaluation set. Source: M14 §1, worked example, "Read the Gemini row"."""

HUMAN = 17.0
"""US dollars a task that ARC Prize puts a human test-taker at. Source: M14 §1, worked example."""


@dataclass(frozen=True)
class Entry:
    """One base model with two harnesses around it; scores in percent, costs in `unit` a task, None where not printed.

    `source` names the line of M14 and whom it cites.
    """

    model: str
    benchmark: str
    baseline: str
    harness: str
    score_alone: float
    score_harness: float
    source: str
    cost_alone: float | None = None
    cost_harness: float | None = None
    unit: str = "--"


ENTRIES: Sequence[Entry] = (
    Entry(
        "GPT-4o",
        "ARC-AGI-1",
        "direct",
        "samples programs, keeps those that fit",
        5.0,
        43.0,
        "M14 §1, table row 1: Greenblatt (2024)",
    ),
    Entry(
        "Claude 3.5 Sonnet",
        "ARC-AGI-1",
        "direct",
        "evolves programs",
        14.0,
        53.6,
        "M14 §1, table row 2: Berman (2024)",
    ),
    Entry(
        "o3-preview",
        "ARC-AGI-1",
        "6 samples",
        "1,024 samples",
        75.7,
        87.5,
        'M14 §1, table row 3: "172 times the compute"',
        1.0,
        172.0,
        "compute",
    ),
    Entry(
        "Gemini 3 Pro",
        "ARC-AGI-2",
        "direct",
        "generates, checks, refines",
        31.1,
        54.0,
        "M14 §1, table row 4: Poetiq (2025)",
        0.81,
        30.57,
        "USD",
    ),
    Entry(
        "GPT-6 Astra",
        "ARC-AGI-3",
        "standard harness",
        "keeps reasoning, compacts history",
        35.2,
        96.7,
        "M14 §1, table row 5: both harnesses run by ARC Prize",
    ),
    Entry(
        "GPT-3.5",
        "HumanEval",
        "direct",
        "agent loop",
        48.1,
        95.1,
        'M14 §1, "The pattern is not specific to puzzles": Ng (2024a)',
    ),
    Entry(
        "LangChain's coding agent",
        "Terminal-Bench 2.0",
        "earlier harness",
        "later harness",
        52.8,
        66.5,
        'M14 §1, "The pattern is not specific to puzzles": Trivedy (2026b)',
    ),
)


def solved(score: float, tasks: int) -> float:
    """Tasks solved at a score in percent."""
    return score / 100.0 * tasks


def cost_per_solved(cost: float | None, score: float) -> float | None:
    """Cost of one solved task where each attempt costs `cost` and `score` percent succeed.

    None where no cost is known or nothing is solved.
    """
    return None if cost is None or score <= 0.0 else cost / (score / 100.0)


def marginal_cost(
    cost_before: float | None, score_before: float, cost_after: float | None, score_after: float
) -> float | None:
    """Cost of each additional solved task on going from one system to another: extra cost over extra score.

    None where a cost is not known or the second system solves no more: then no price buys a further task.
    """
    if cost_before is None or cost_after is None or score_after <= score_before:
        return None
    return (cost_after - cost_before) / ((score_after - score_before) / 100.0)
