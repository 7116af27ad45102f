"""Expected costs of the three regions against sums over what can happen."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.costs import PERFECT, Costs, Reviewer, best_region, expected_costs
from harnesses.guard.region import GuardError, Region

F = Fraction
amounts = st.builds(F, st.integers(0, 20), st.sampled_from([1, 1, 2, 3]))
shares = st.builds(lambda k, n: F(min(k, n), n), st.integers(0, 8), st.integers(1, 8))


@given(shares, amounts, amounts, amounts, amounts, shares, shares, amounts)
def test_expected_costs_are_sums_over_labels_and_verdicts(p, a, s, e, w, e0, e1, r) -> None:
    """T5's cost of asking, outcome by outcome: (probability, cost) of each label with each verdict."""
    outcomes = {
        Region.ACT: [(p, 0), (1 - p, w)],
        Region.ESCALATE: [(p, e), (1 - p, e)],
        Region.ASK: [
            (p * (1 - e1), a),  # allowed, approved
            (p * e1, a + r),  # allowed, rejected
            ((1 - p) * e0, a + w),  # disallowed, approved: carried out
            ((1 - p) * (1 - e0), a + s),  # disallowed, rejected
        ],
    }
    found = expected_costs(p, Costs(a, s, e, w), Reviewer(e0, e1, r))
    assert found == {kind: sum(q * cost for q, cost in rows) for kind, rows in outcomes.items()}
    assert list(found) == list(Region), "the more autonomous region first, so that it wins a tie"


def test_the_example_of_the_source() -> None:
    """M14 §7: always acting, asking and escalating cost 5, 1.5 and 3 at the rate of 100 disallowed of 400."""
    found = expected_costs("3/4", Costs(ask=0.5, miss=4, escalate=3, wrong=20))
    assert found == {Region.ACT: 5, Region.ASK: F(3, 2), Region.ESCALATE: 3}


@pytest.mark.parametrize(
    ("p", "costs", "best"),
    [
        (F(31, 32), Costs(F(1, 2), 4, 3, 20), Region.ACT),
        (F(3, 8), Costs(F(1, 2), 4, 3, 20), Region.ASK),
        (F(1, 2), Costs(3, 0, 3, 6), Region.ACT),
        (F(1, 4), Costs(3, 0, 3, 6), Region.ASK),
        (0, Costs(), Region.ACT),
    ],
)
def test_ties_go_to_the_more_autonomous_region(p, costs, best) -> None:
    found = expected_costs(p, costs)
    assert sorted(found.values())[0] == sorted(found.values())[1]
    assert best_region(p, costs) is best


def test_costs_and_reviewers_are_read_exactly() -> None:
    assert Costs("1/2", 0.1, 3, 20).exact() == Costs(F(1, 2), F(1, 10), F(3), F(20))
    assert Reviewer(0.1, "1/3", 2).exact() == Reviewer(F(1, 10), F(1, 3), F(2))
    assert PERFECT.exact() == Reviewer(F(0), F(0), F(0))


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda: Costs(ask=-1).exact(), "cost ask is -1; give 0 or more, such as 1/2"),
        (lambda: Costs(wrong="dear").exact(), "cost wrong: 'dear' is not a number"),
        (lambda: Costs(miss=float("nan")).exact(), "cost miss: nan is not a finite number"),
        (lambda: Costs(escalate=True).exact(), "cost escalate: 'True' is not a number"),
        (lambda: Reviewer(e0=2).exact(), "reviewer e0 is 2, not a probability"),
        (lambda: Reviewer(e1=-0.1).exact(), "reviewer e1 is -0.1, not a probability"),
        (lambda: Reviewer(r=-1).exact(), "reviewer r is -1; give 0 or more"),
        (lambda: expected_costs(1.5, Costs()), "report p is 1.5, not a probability"),
    ],
)
def test_what_is_no_cost_and_no_reviewer_is_refused_by_name(make, fragment) -> None:
    with pytest.raises(GuardError, match=fragment):
        make()
