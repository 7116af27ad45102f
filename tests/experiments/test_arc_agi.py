"""ARC-AGI: the arithmetic that M14 prints, and that nothing is computed where no cost is known."""

from __future__ import annotations

import pytest

from experiments.arc_agi import ENTRIES, HUMAN, TASKS, cost_per_solved, marginal_cost, solved

GEMINI = next(entry for entry in ENTRIES if entry.model == "Gemini 3 Pro")


def test_the_gemini_row_is_read_as_M14_reads_it() -> None:
    """M14 §1: about 37 and 65 of 120 tasks for $97 and $3,668; $2.60 and $56.61 a solved task; about $130 more."""
    assert GEMINI.cost_alone is not None and GEMINI.cost_harness is not None
    assert (round(solved(GEMINI.score_alone, TASKS)), round(solved(GEMINI.score_harness, TASKS))) == (37, 65)
    assert (round(TASKS * GEMINI.cost_alone), round(TASKS * GEMINI.cost_harness)) == (97, 3668)
    assert cost_per_solved(GEMINI.cost_alone, GEMINI.score_alone) == pytest.approx(2.60, abs=0.005)
    assert cost_per_solved(GEMINI.cost_harness, GEMINI.score_harness) == pytest.approx(56.61, abs=0.005)
    further = marginal_cost(GEMINI.cost_alone, GEMINI.score_alone, GEMINI.cost_harness, GEMINI.score_harness)
    assert further == pytest.approx(130, abs=0.5)
    assert further == pytest.approx((30.57 - 0.81) / (0.540 - 0.311))
    assert further is not None and further > HUMAN > GEMINI.cost_alone


def test_the_rows_are_those_of_the_source() -> None:
    printed = {
        "GPT-4o": (5, 43),
        "Claude 3.5 Sonnet": (14, 53.6),
        "o3-preview": (75.7, 87.5),
        "Gemini 3 Pro": (31.1, 54),
        "GPT-6 Astra": (35.2, 96.7),
        "GPT-3.5": (48.1, 95.1),
        "LangChain's coding agent": (52.8, 66.5),
    }
    assert {entry.model: (entry.score_alone, entry.score_harness) for entry in ENTRIES} == printed
    assert all(entry.source.startswith("M14 §1") for entry in ENTRIES)
    assert {entry.model for entry in ENTRIES if entry.cost_alone} == {"Gemini 3 Pro", "o3-preview"}


def test_more_samples_of_one_model_cost_more_for_each_task_they_add() -> None:
    """172 times the compute for 11.8 points: 196.6 a solved task, 1,449 a further one, in units of six samples."""
    assert cost_per_solved(172.0, 87.5) == pytest.approx(196.571, abs=1e-3)
    assert marginal_cost(1.0, 75.7, 172.0, 87.5) == pytest.approx(171 / 0.118)


def test_what_is_not_known_stays_undefined() -> None:
    assert cost_per_solved(None, 50.0) is None and cost_per_solved(3.0, 0.0) is None
    assert marginal_cost(None, 10.0, 2.0, 20.0) is None and marginal_cost(1.0, 10.0, None, 20.0) is None
    assert marginal_cost(1.0, 20.0, 2.0, 20.0) is None and marginal_cost(1.0, 20.0, 2.0, 10.0) is None


def test_the_marginal_cost_lies_above_the_average_where_returns_fall() -> None:
    """The average of the second system is the mean of the first's and the marginal one, weighted by what they solve."""
    first, second = cost_per_solved(0.81, 31.1), cost_per_solved(30.57, 54.0)
    further = marginal_cost(0.81, 31.1, 30.57, 54.0)
    assert first is not None and second is not None and further is not None
    assert second == pytest.approx((31.1 * first + (54.0 - 31.1) * further) / 54.0)
    assert first < second < further
