"""Formal: closed forms by hand, J as the sum of what it is made of, and where the chooser's error can matter."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from harnesses.desk.patterns.formal import HORIZON, NODES, PATTERNS, PRICE, Twin, twin
from harnesses.desk.patterns.request import Competence
from pomdp.model import ModelError

F = Fraction
FIXED = ("chain", "routing", "parallel", "evaluator")
"""Patterns without a node at which the model chooses."""

RATES = Competence()
# A chain on one question, and on two taken for one; worked out by hand from the rates.
SINGLE = F(9, 10) * (F(9, 10) * F(19, 20) + F(1, 10) * F(3, 10)) + F(1, 10) * (
    F(1, 4) * F(1, 10) + F(3, 4) * F(3, 10)
)
DOUBLE = F(9, 10) * (F(9, 10) * F(3, 10) + F(1, 10) * F(1, 20)) + F(1, 10) * F(1, 20)


def mixed(one: Fraction, two: Fraction) -> Fraction:
    """Two requests in three have one question."""
    return F(2, 3) * one + F(1, 3) * two


def vote(p: Fraction) -> Fraction:
    """Two or three of three are right."""
    return p**2 * (3 - 2 * p)


def checked(p: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Shares sent right and wrong, and drafts on average, of three rounds of draft and check."""
    right, wrong = p * F(9, 10), (1 - p) * F(1, 5)
    fails = 1 - right - wrong
    rounds = 1 + fails + fails**2
    return right * rounds, wrong * rounds, rounds


CLOSED = {
    "chain": (mixed(SINGLE, DOUBLE), F(2), F(530)),
    "routing": (
        mixed(SINGLE, F(9, 10) * SINGLE**2 + F(1, 10) * DOUBLE),
        1 + 2 * mixed(F(1), 2 * F(9, 10) + F(1, 10)),
        190 + 530 * mixed(F(1), 2 * F(9, 10) + F(1, 10)),
    ),
    "parallel": (mixed(vote(SINGLE), vote(DOUBLE)), F(6), F(1590)),
    "evaluator": (
        mixed(checked(SINGLE)[0], checked(DOUBLE)[0]),
        3 * mixed(checked(SINGLE)[2], checked(DOUBLE)[2]),
        870 * mixed(checked(SINGLE)[2], checked(DOUBLE)[2]),
    ),
}


@pytest.mark.parametrize("pattern", FIXED)
def test_fixed_patterns_have_closed_forms(pattern: str) -> None:
    solved, calls, tokens = CLOSED[pattern]
    found = twin(pattern).measures()
    assert found.solved == pytest.approx(float(solved), abs=1e-12)
    assert found.calls == pytest.approx(float(calls), abs=1e-12)
    assert found.tokens == pytest.approx(float(tokens), abs=1e-9)
    wrong = mixed(checked(SINGLE)[1], checked(DOUBLE)[1]) if pattern == "evaluator" else 1 - solved
    assert found.J.contains(solved - wrong - PRICE * tokens)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_J_is_what_it_is_made_of(pattern: str) -> None:
    """J by backward induction over M_H against sums of visits to M_0 that count one thing each."""
    found = twin(pattern).measures()
    J = found.solved - found.wrong - float(PRICE) * found.tokens
    assert found.J.lower - 1e-9 <= J <= found.J.upper + 1e-9
    shares = (found.solved, found.wrong, found.handed, found.unfinished)
    assert min(shares) >= 0 and sum(shares) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_run_is_over_within_the_horizon(pattern: str) -> None:
    induced, pi = twin(pattern).induced, twin(pattern).policy(F(1, 2))
    *_, last = induced.occupancy(pi, HORIZON)
    over = [s for s in range(induced.model.num_states) if not induced.model.terminal[s]]
    assert sum(last[s] for s in over) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_choosers_error_matters_only_where_the_model_chooses(pattern: str) -> None:
    free = any(node.free for node in NODES[pattern].values())
    assert free != (pattern in FIXED)
    calm, wild = (twin(pattern).returned(error) for error in (F(0), F(2, 5)))
    assert (calm == wild) != free and wild.lower <= calm.upper


def test_one_free_node_without_error_is_the_workflow_it_walks() -> None:
    """With everything certain the loop walks classify, retrieve, draft: it differs from the chain in tokens alone."""
    sure = Competence(
        classify=F(1), found=F(1), blind=F(1), blind_astray=F(0), grounded=F(1), grounded_two=F(1), two=F(0)
    )
    chain, loop = (Twin(name, sure).measures(F(0)) for name in ("chain", "tool_use"))
    assert (chain.solved, loop.solved) == (1.0, 1.0)
    assert chain.tokens == 530 and loop.tokens == pytest.approx(3 * (190 + 120) + 100 + 200)
    assert (chain.calls, loop.calls) == (2.0, 3.0)


def test_a_check_pays_because_it_knows_something_new() -> None:
    """M14 §9, after Huang et al. (2024): without new information drafting again only costs."""
    blind = Twin("evaluator", replace(RATES, passes=F(3, 5), slips=F(3, 5))).returned()
    assert blind.upper < twin("chain").returned().lower < twin("evaluator").returned().lower


def test_votes_help_only_where_most_are_right() -> None:
    one, two = (
        [Twin(name, replace(RATES, two=F(share))).measures().solved for name in ("chain", "parallel")]
        for share in (0, 1)
    )
    assert SINGLE > F(1, 2) > DOUBLE and one[1] > one[0] and two[1] < two[0]


def test_the_outer_graph_limits_what_the_loop_can_break() -> None:
    """The study's contrast, and that its size grows with the chooser's error."""
    gaps = [twin("hybrid").returned(e).lower - twin("autonomous").returned(e).upper for e in (F(0), F(1, 5))]
    assert 0 < gaps[0] < gaps[1]


def test_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(ModelError, match="known: chain"):
        Twin("swarm")
