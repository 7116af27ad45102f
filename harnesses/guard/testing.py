"""Hypothesis kit for a user's own guard: strategies, and assertions that end in an exact counterexample.

The one file of the guard that imports hypothesis. Put the assertions into tests, with your rule in place of this one:

    >>> from harnesses.guard.costs import Costs
    >>> from harnesses.guard.testing import assert_rule_optimal, assert_share_bound
    >>> costs = Costs(ask=0.5, miss=4, escalate=3, wrong=20)
    >>> def rule(p):
    ...     return "act" if p >= 31 / 32 else "ask" if p >= 3 / 8 else "escalate"
    >>> assert_rule_optimal(rule, costs)
    >>> assert_share_bound(rule, tau_act="31/32")
    >>> assert_share_bound(lambda p: "act" if p > 0.95 else "ask", tau_act="31/32")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: the share among acted-on calls is ..., above 1 - tau_act = 1/32, on the calibrated guard {...

The guard in that message is exact, {p 24/25: allowed 24/25, not 1/25} say, and the rule acts at p = 24/25.
A rule is a function p -> Region, or the region's name; a selection is (reports, labels) -> threshold. They must be
pure. A search repeats itself as long as the modules that are imported stay the same. Not for use within @given,
which the assertions contain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from harnesses.guard.costs import PERFECT, Costs, Reviewer, best_region, expected_costs
from harnesses.guard.finite import FiniteGuard
from harnesses.guard.region import GuardError, Region, probability
from harnesses.guard.scores import Scores
from harnesses.guard.selection_law import SelectionLaw, telling_sizes
from pomdp.rational import read_rational

Found = TypeVar("Found")
Guards = st.SearchStrategy[FiniteGuard]
ZERO, ONE = Fraction(0), Fraction(1)
MAX_COST = 20
STEP = Fraction(1, 1000)
# A float on this grid is the number that it is read as: its shortest decimal is its exact value.
GRID = 2**15
# Other reports reach a rule rounded to the nearest float; a bound broken by less than this is not held against it.
ROUNDING = Fraction(1, 10**9)
# A law with more different samples than this is not enumerated.
MAX_SAMPLES = 500
# In one list, so that a probability is one draw; it shrinks to the smallest denominator.
RATIOS = [Fraction(k, n) for n in range(1, 33) for k in range(n + 1) if math.gcd(k, n) == 1]
SEARCH = settings(
    derandomize=True, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
MEASURES = ("share", "uar", "held_back", "ece")


def probabilities(near: Iterable[Fraction] = ()) -> st.SearchStrategy[Fraction]:
    """Rationals in [0, 1] with small denominators; 0 and 1 are common, and so are `near` and their neighbours."""
    exact = [probability(x, "near") for x in near]
    close = [x + d for x in exact for d in (ZERO, -STEP, STEP, -STEP * STEP, STEP * STEP) if 0 <= x + d <= 1]
    often = [ZERO, ONE, *close]
    return st.sampled_from([*RATIOS, *often * (len(RATIOS) // len(often))])


def costs(*, rational: bool = False, max_cost: int = MAX_COST) -> st.SearchStrategy[Costs]:
    """Costs that are integers from 0 to `max_cost`, or `rational` ones; 0 and equal costs are common."""
    amounts: st.SearchStrategy[Any] = st.integers(0, max_cost)
    if rational:
        amounts = st.builds(Fraction, amounts, st.integers(1, 6))
    # Half of them from so few numbers that they often are equal, which is where rules err on ties.
    cost = st.one_of(st.integers(0, 2), amounts)
    return st.builds(Costs, cost, cost, cost, cost)


def reviewers(*, regret: bool = True) -> st.SearchStrategy[Reviewer]:
    """Reviewers who err with probabilities that are 0 or 1 now and then; without `regret`, r = 0."""
    r = st.integers(0, MAX_COST) if regret else st.just(0)
    return st.builds(Reviewer, probabilities(), probabilities(), r)


@st.composite
def calibrated_guards(
    draw: st.DrawFn, *, max_contexts: int = 4, near: Sequence[Fraction] = ()
) -> FiniteGuard:
    """Calibrated by construction: contexts with a weight and a true eta each, and a partition of them.

    The report in each cell is the weighted mean eta of its contexts, which differ where the guard sees too little.
    `near`: values that eta often is at or next to, such as a threshold.
    """
    context = st.tuples(st.integers(0, max_contexts - 1), probabilities(near), st.integers(1, 4))
    cells: dict[int, list[tuple[Fraction, int]]] = {}
    for cell, eta, weight in draw(st.lists(context, min_size=1, max_size=max_contexts)):
        cells.setdefault(cell, []).append((eta, weight))
    atoms = []
    for contexts in cells.values():
        report = sum((eta * w for eta, w in contexts), ZERO) / sum(w for _, w in contexts)
        atoms += [(report, eta, w) for eta, w in contexts]
    return FiniteGuard.from_atoms(atoms)


def miscalibrated_guards(
    *, max_contexts: int = 4, near: Sequence[Fraction] = ()
) -> st.SearchStrategy[FiniteGuard]:
    """Report and true eta independent of each other; contexts with equal reports are one atom."""
    reports = st.one_of(st.sampled_from([ONE, Fraction(1, 2)]), probabilities(near))
    atoms = st.tuples(reports, probabilities(near), st.integers(1, 4))
    return st.lists(atoms, min_size=1, max_size=max_contexts).map(FiniteGuard.from_atoms)


def thresholds_near(guard: FiniteGuard) -> st.SearchStrategy[Fraction]:
    """The guard's reports, those plus and minus 1/1000, 0 and 1: where a rule that is wrong on ties shows it."""
    close = {p + d for p in guard.reports for d in (-STEP, ZERO, STEP)}
    return st.sampled_from(sorted({ZERO, ONE} | {tau for tau in close if 0 <= tau <= 1}))


@st.composite
def scores(draw: st.DrawFn, *, max_items: int = 8, both_classes: bool = False) -> Scores:
    """A small labelled sample with reports in eighths, so that ties are common; on request both labels occur."""
    item = st.tuples(st.integers(0, 8).map(lambda k: k / 8), st.integers(0, 1))
    items = draw(st.lists(item, min_size=1, max_size=max_items - both_classes))
    if both_classes and len({y for _, y in items}) < 2:
        items.append((draw(item)[0], 1 - items[0][1]))
    return Scores.of([p for p, _ in items], [y for _, y in items])


@st.composite
def report_laws(
    draw: st.DrawFn, *, max_atoms: int = 3, parts: int = 8, near: Sequence[Fraction] = ()
) -> dict[Fraction, Fraction]:
    """The law of a disallowed call's report, {report: mass}, the largest report first; reports in 1/parts.

    The mass at or above a report, the UAR of that threshold, is often one of `near`.
    """
    inner = st.integers(1, 7).map(lambda k: Fraction(k, 8))
    masses = st.one_of(st.sampled_from([x for x in near if 0 < x < 1]), inner) if near else inner
    ends = [ZERO, *sorted(draw(st.lists(masses, max_size=max_atoms - 1, unique=True))), ONE]
    atoms = len(ends) - 1
    drawn = draw(st.lists(st.integers(0, parts), min_size=atoms, max_size=atoms, unique=True))
    reports = sorted((Fraction(k, parts) for k in drawn), reverse=True)
    return {p: high - low for p, (low, high) in zip(reports, pairwise(ends), strict=True)}


def assert_rule_optimal(
    rule: Callable[..., Any],
    costs: Costs | st.SearchStrategy[Costs],
    reviewer: Reviewer = PERFECT,
    *,
    ties: bool = True,
    exact: bool = False,
    max_examples: int = 200,
) -> None:
    """T1, T5: `rule(p)` has the least expected cost at every p tried, among them 0, 1, all thresholds and neighbours.

    `ties`: where costs are equal it takes the more autonomous region. p is a float that is read without rounding,
    or with `exact` a Fraction. With a strategy of costs, `costs()` say, the rule is called as `rule(p, costs)`.
    Raises AssertionError with a counterexample; GuardError for what is no region.
    """
    varied = isinstance(costs, st.SearchStrategy)

    def choose(p: Fraction, c: Costs) -> Region:
        given = p if exact else float(p)
        return _region(rule(given, c) if varied else rule(given), p)

    def breaks(case: tuple[Costs, Fraction]) -> bool:
        c, p = case
        found, chosen = expected_costs(p, c, reviewer), choose(p, c)
        return found[chosen] > min(found.values()) or (ties and chosen is not best_region(p, c, reviewer))

    def cases_of(c: Costs) -> st.SearchStrategy[tuple[Costs, Fraction]]:
        return st.tuples(st.just(c), _reports(c, reviewer, exact))

    cases = costs.flatmap(cases_of) if isinstance(costs, st.SearchStrategy) else cases_of(costs)
    case = _counterexample(cases, breaks, max_examples)
    if case is None:
        return
    c, p = case
    found, chosen, best = expected_costs(p, c, reviewer), choose(p, c), best_region(p, c, reviewer)
    told = f"at p = {p} the rule says {chosen.value}, which costs {found[chosen]}"
    tie = f" as {best.value} does; a tie goes to the more autonomous one (else pass ties=False)"
    told += tie if found[chosen] == found[best] else f" where {best.value} costs {found[best]}"
    judge = "" if reviewer == PERFECT else f"; {_named(reviewer)}"
    raise AssertionError(f"the rule is not optimal: {told} ({_named(c)}{judge})")


def assert_share_bound(
    rule: Any, tau_act: Any, guards: Guards | None = None, *, exact: bool = False, max_examples: int = 200
) -> None:
    """T2: on calibrated guards at most 1 - tau_act of the calls that `rule` acts on are not allowed.

    `rule`: p -> region, or a number: act where p >= it. `guards`: others to hold the promise against. Raises
    AssertionError with a guard on which it breaks.
    """
    tau = probability(tau_act, "tau_act")
    slack = ZERO if exact else ROUNDING

    def breaks(guard: FiniteGuard) -> bool:
        mass, bad, _ = _acted(rule, guard, exact)
        return bad > (1 - tau + slack) * mass

    guard = _counterexample(calibrated_guards(near=[tau]) if guards is None else guards, breaks, max_examples)
    if guard is not None:
        mass, bad, acted = _acted(rule, guard, exact)
        raise AssertionError(
            f"the share among acted-on calls is {bad / mass}, above 1 - tau_act = {1 - tau}, on {_told(guard)}; "
            f"the rule acts at p = {acted} (theorem T2)"
        )


def assert_uar_bound(
    rule: Any, tau_act: Any, guards: Guards | None = None, *, exact: bool = False, max_examples: int = 200
) -> None:
    """T3: of the disallowed calls `rule` acts on at most (1 - tau) m / pi0, and (1 - tau)(1 - pi0) / (tau pi0).

    m is the mass acted on, pi0 that of disallowed calls, tau = tau_act. `rule`, `guards`, errors: as for
    `assert_share_bound`.
    """
    tau = probability(tau_act, "tau_act")
    slack = ZERO if exact else ROUNDING

    def bound(guard: FiniteGuard, mass: Fraction) -> Fraction:
        sent = (1 - tau) * mass
        return (min(sent, (1 - tau) * (1 - guard.pi0) / tau) if tau else sent) / guard.pi0

    def breaks(guard: FiniteGuard) -> bool:
        mass, bad, _ = _acted(rule, guard, exact)
        return guard.pi0 > 0 and bad / guard.pi0 > bound(guard, mass) + slack

    guard = _counterexample(calibrated_guards(near=[tau]) if guards is None else guards, breaks, max_examples)
    if guard is not None:
        mass, bad, acted = _acted(rule, guard, exact)
        raise AssertionError(
            f"the UAR is {bad / guard.pi0}, above the {bound(guard, mass)} that tau_act = {tau} promises, on "
            f"{_told(guard)}; the rule acts at p = {acted} (theorem T3)"
        )


def assert_measured(measure: Callable[..., Any], quantity: str, *, max_examples: int = 200) -> None:
    """`measure(p [N], y [N], tau)` is the share, the UAR, what is held back or the L1 ECE at p >= tau, exactly.

    `quantity`: share (bad among acted-on), uar (acted-on among disallowed), held_back (among allowed) or ece (equal
    reports are one bin). Undefined is None or NaN. Raises AssertionError with a small sample.
    """
    if quantity not in MEASURES:
        raise GuardError(f"quantity {quantity!r} is none of {', '.join(MEASURES)}")

    def both(case: tuple[Scores, Fraction]) -> tuple[Any, Fraction | None]:
        sample, tau = case
        value = measure(sample.p.copy(), sample.y.copy(), float(tau))
        undefined = value is None or (isinstance(value, float) and math.isnan(value))
        return None if undefined else value, getattr(FiniteGuard.from_scores(sample.p, sample.y), quantity)(
            tau
        )

    def breaks(case: tuple[Scores, Fraction]) -> bool:
        value, right = both(case)
        return (value is None) != (right is None) or (right is not None and abs(value - right) > ROUNDING)

    cases = scores().flatmap(
        lambda s: st.tuples(st.just(s), thresholds_near(FiniteGuard.from_scores(s.p, s.y)))
    )
    case = _counterexample(cases, breaks, max_examples)
    if case is not None:
        (sample, tau), (value, right) = case, both(case)
        raise AssertionError(
            f"{quantity} at tau = {tau} is {'undefined' if right is None else right}, and the function gives {value}, "
            f"for reports {', '.join(str(read_rational(p)) for p in sample.p)} with labels {sample.y.tolist()}"
        )


def assert_selection_valid(
    select: Callable[[np.ndarray, np.ndarray], float | None],
    alpha: Any,
    delta: Any,
    *,
    sizes: Sequence[int] | None = None,
    max_examples: int = 200,
) -> None:
    """T9: P(UAR of the selected threshold > alpha) <= delta, whatever the law of the disallowed reports.

    `select(p [n], y [n])` gives tau, for a rule that acts where p >= tau, or None: never act. No simulation: on laws
    with a few atoms, where ties are the rule, every sample of `sizes` disallowed items (by default the smallest that
    admit none and one above the threshold, and fewer) is passed to it, beside one allowed item at each report, and
    the probabilities of those that break alpha are added up. Raises AssertionError with such a law.
    """
    limit, risk = probability(alpha, "alpha"), probability(delta, "delta")
    if not (0 < limit < 1 and 0 < risk < 1):
        raise GuardError(f"alpha {alpha} and delta {delta} lie strictly between 0 and 1, such as 1/2 and 1/8")
    counts, selection = telling_sizes(limit, risk) if sizes is None else tuple(sizes), SelectionLaw(select)
    close = [limit, limit + STEP, limit * (1 + STEP * STEP)]

    def laws(n: int) -> st.SearchStrategy[tuple[int, dict[Fraction, Fraction]]]:
        # Three atoms where their samples are few; else two, with reports that recur, so that answers are reused.
        atoms, parts = (3, 8) if math.comb(n + 2, 2) <= MAX_SAMPLES else (2, 2)
        return st.tuples(st.just(n), report_laws(max_atoms=atoms, parts=parts, near=close))

    def breaks(case: tuple[int, dict[Fraction, Fraction]]) -> bool:
        return sum(v.chance for v in selection.violations(case[1], case[0], limit)) > risk

    case = _counterexample(st.one_of(*map(laws, counts)), breaks, max_examples)
    if case is None:
        return
    n, law = case
    found = selection.violations(law, n, limit)
    worst, total = max(found), sum((v.chance for v in found), ZERO)
    drawn = ", ".join(f"{k} times {p}" for p, k in zip(law, worst.sample, strict=True) if k)
    raise AssertionError(
        f"UAR exceeds alpha = {limit} with probability {_short(total)}, above delta = {risk}, where the reports of "
        f"N = {n} disallowed items have the law {{{', '.join(f'{p}: {m}' for p, m in law.items())}}}; such as after "
        f"{drawn}, when tau = {worst.tau} and the UAR is {worst.uar} (theorem T9)"
    )


def _counterexample(
    strategy: st.SearchStrategy[Found], breaks: Callable[[Found], bool], max_examples: int
) -> Found | None:
    """A small value that breaks a promise; None where the search found none.

    An error of the callable under test is raised as it is and not shrunk: every later case counts as found.
    """
    errors: list[Exception] = []

    def tried(case: Found) -> bool:
        try:
            return bool(errors) or breaks(case)
        except Exception as error:
            errors.append(error)
            return True

    try:
        found = find(strategy, tried, settings=settings(SEARCH, max_examples=max_examples))
    except NoSuchExample:
        found = None
    if errors:
        raise errors[0]
    return found


def _region(value: Any, p: Fraction) -> Region:
    """The region that a rule's answer names. Raises GuardError for a truth value, a code or anything else."""
    if isinstance(value, Region):
        return value
    if isinstance(value, str) and value.lower() in {kind.value for kind in Region}:
        return Region(value.lower())
    raise GuardError(
        f"the rule gives {value!r} at p = {p}, which names no region, and a gate that tests its truth lets calls "
        f"through for every answer or for none; return Region.ACT, ASK or ESCALATE, or 'act', 'ask', 'escalate'"
    )


def _acted(rule: Any, guard: FiniteGuard, exact: bool) -> tuple[Fraction, Fraction, str]:
    """Mass and bad mass of the reports that a rule or a threshold acts on, and those reports in words."""
    if callable(rule):
        acted = [a for a in guard.atoms if _region(rule(a.p if exact else float(a.p)), a.p) is Region.ACT]
    else:
        tau = probability(rule, "threshold")
        acted = [a for a in guard.atoms if a.p >= tau]
    mass, bad = sum((a.mass for a in acted), ZERO), sum((a.bad for a in acted), ZERO)
    return mass, bad, ", ".join(str(a.p) for a in acted)


def _reports(costs: Costs, reviewer: Reviewer, exact: bool) -> st.SearchStrategy[Fraction]:
    """Reports to try: 0, 1, where two regions cost the same, those numbers' neighbours, and any others."""
    at0, at1 = (list(expected_costs(p, costs, reviewer).values()) for p in (0, 1))
    gaps = [(at0[i] - at0[j], at1[i] - at1[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    inside = sorted({x / (x - y) for x, y in gaps if x != y and 0 <= x / (x - y) <= 1})
    if exact:
        return probabilities(inside)
    around = {
        Fraction(k, GRID) for p in inside for k in range(math.ceil(p * GRID) - 1, math.floor(p * GRID) + 2)
    }
    close = sorted(p for p in around if 0 <= p <= 1)
    return st.one_of(
        st.sampled_from([ZERO, ONE, *close]), st.integers(0, GRID).map(lambda k: Fraction(k, GRID))
    )


def _short(value: Fraction) -> str:
    """An exact number, to seven digits where it has too many to be read."""
    return str(value) if len(str(value)) <= 40 else f"{float(value):.7g}"


def _named(record: Costs | Reviewer) -> str:
    """Costs or a reviewer in words."""
    return ", ".join(f"{name} {value}" for name, value in vars(record.exact()).items())


def _told(guard: FiniteGuard) -> str:
    return f"the {'calibrated' if guard.is_calibrated else 'miscalibrated'} guard {{{guard}}}"
