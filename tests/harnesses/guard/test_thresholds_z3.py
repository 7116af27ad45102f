"""z3 proves the shipped `cuts` optimal over all real costs and reviewers: T1 and T5.

Nothing is transcribed: the Python function itself runs on symbols. A comparison of symbols is a `Truth`, and asking
for its truth value forks the run; one run per sequence of answers gives every path with its condition and result.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

import harnesses.guard.thresholds as shipped
from harnesses.guard.costs import Costs, Reviewer, expected_costs
from harnesses.guard.region import Region

z3 = pytest.importorskip("z3", reason="the proofs need z3-solver, which the extra `oracles` brings")

MILLISECONDS = 20_000


@dataclass
class Run:
    """One run of the function: the answers it is to follow, and what it was asked."""

    answers: list[bool]
    condition: list[Any]

    def ask(self, condition: Any) -> bool:
        """The answer of this run to a condition; True first where it is new."""
        position = len(self.condition)
        if position == len(self.answers):
            self.answers.append(True)
        answer = self.answers[position]
        self.condition.append(condition if answer else z3.Not(condition))
        return answer


@dataclass(frozen=True)
class Truth:
    """A condition on symbols, whose truth value forks the run."""

    run: Run
    condition: Any

    def __bool__(self) -> bool:
        return self.run.ask(self.condition)


@dataclass(frozen=True, eq=False)
class Symbol:
    """A quotient top/bottom of polynomials with bottom > 0 on the path, so that comparisons multiply out."""

    run: Run
    top: Any
    bottom: Any = 1

    def _of(self, other: Any) -> Symbol:
        return other if isinstance(other, Symbol) else Symbol(self.run, z3.RealVal(other))

    def __add__(self, other: Any) -> Symbol:
        y = self._of(other)
        if self.bottom is y.bottom:
            return Symbol(self.run, self.top + y.top, self.bottom)
        return Symbol(self.run, self.top * y.bottom + y.top * self.bottom, self.bottom * y.bottom)

    def __neg__(self) -> Symbol:
        return Symbol(self.run, -self.top, self.bottom)

    def __sub__(self, other: Any) -> Symbol:
        return self + -self._of(other)

    def __rsub__(self, other: Any) -> Symbol:
        return self._of(other) + -self

    def __mul__(self, other: Any) -> Symbol:
        y = self._of(other)
        return Symbol(self.run, self.top * y.top, self.bottom * y.bottom)

    def __truediv__(self, other: Any) -> Symbol:
        y = self._of(other)
        if self.run.ask(y.top > 0):
            return Symbol(self.run, self.top * y.bottom, self.bottom * y.top)
        if self.run.ask(y.top < 0):
            return Symbol(self.run, -self.top * y.bottom, self.bottom * -y.top)
        raise ZeroDivisionError

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def _sides(self, other: Any) -> tuple[Any, Any]:
        y = self._of(other)
        return self.top * y.bottom, y.top * self.bottom

    def __le__(self, other: Any) -> Truth:
        left, right = self._sides(other)
        return Truth(self.run, left <= right)

    def __lt__(self, other: Any) -> Truth:
        left, right = self._sides(other)
        return Truth(self.run, left < right)

    def __ge__(self, other: Any) -> Truth:
        left, right = self._sides(other)
        return Truth(self.run, left >= right)

    def __gt__(self, other: Any) -> Truth:
        left, right = self._sides(other)
        return Truth(self.run, left > right)


def paths(function: Callable[..., Any], values: tuple[Any, ...]) -> Iterator[tuple[Any, Any, Run]]:
    """Every path of the function: its condition, its result (or the error it raised) and its run."""
    pending: list[list[bool]] = [[]]
    while pending:
        prefix = pending.pop()
        run = Run(list(prefix), [])
        try:
            result = function(*(Symbol(run, v) if z3.is_expr(v) else v for v in values))
        except ZeroDivisionError as error:
            result = error
        pending += [[*run.answers[:i], False] for i in range(len(prefix), len(run.answers))]
        yield z3.And(*run.condition), result, run


def model_of(*claims: Any) -> Any | None:
    """A model of all claims, None where there is none; the test fails where z3 does not know."""
    solver = z3.Tactic("qfnra-nlsat").solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*claims)
    answer = solver.check()
    assert answer != z3.unknown, f"z3 gave up: {solver.reason_unknown()}"
    return solver.model() if answer == z3.sat else None


W, A, S, E, E0, E1, R, Q = z3.Reals("w a s e e0 e1 r q")
PERFECT = ((W, A, S, E), A, S, [x >= 0 for x in (W, A, S, E)])
FALLIBLE = (
    (W, A, S, E, E0, E1, R),
    A + E1 * R,
    (1 - E0) * S + E0 * W - E1 * R,
    [*(x >= 0 for x in (W, A, S, E, E0, E1, R)), E0 <= 1, E1 <= 1],
)
"""Inputs of `cuts`, the base and slope of the cost of asking, and what is assumed: T1 and T5."""


def wrongs(result: Any, run: Run, base: Any, slope: Any) -> Iterator[tuple[str, Any]]:
    """What would make a result wrong, each as a claim about the doubt Q in [0, 1]; all must be unsatisfiable.

    `base + slope Q` is the cost of asking; acting costs `W Q`, escalating `E`.
    """
    act, ask = W * Q, base + slope * Q
    act_is_best = z3.And(act <= ask, act <= E)
    if isinstance(result, ZeroDivisionError):
        yield "divides by zero", z3.BoolVal(True)
        return
    if result is None:
        # Right only where no two thresholds serve: at some doubt an escalation is strictly best, and at a larger one,
        # here 1, a question is no dearer than it and cheaper than acting. Where acting meets escalating is E / W, and
        # where asking does is (base - E) / -slope; the first doubt is their midpoint, x / y.
        x, y = E * -slope + (base - E) * W, 2 * W * -slope
        shape = z3.And(W > 0, slope < 0, x > 0, x < y)
        escalate = z3.And(E * y < W * x, E * y < base * y + slope * x)
        yield "none", z3.Not(z3.And(shape, escalate, base + slope <= E, base + slope < W))
        return
    q_act, q_ask = (x if isinstance(x, Symbol) else Symbol(run, z3.RealVal(x)) for x in result)
    to_act, to_ask = ((Symbol(run, Q) <= x).condition for x in (q_act, q_ask))
    inside = z3.And(Q >= 0, Q <= 1)
    yield "act", z3.And(inside, to_act != act_is_best)
    yield "ask", z3.And(inside, z3.Not(to_act), to_ask != (ask <= E))
    for x in (q_act, q_ask):
        yield "range", z3.Or(x.top < 0, x.top > x.bottom)
    yield "order", z3.Not((q_act <= q_ask).condition)


def refutation(
    function: Callable[..., Any], values: tuple[Any, ...], base: Any, slope: Any, given: list
) -> Any:
    """(what is wrong, a model) of the first path that is not optimal; None proves the function."""
    for condition, result, run in paths(function, values):
        for name, claim in wrongs(result, run, base, slope):
            found = model_of(*given, condition, claim)
            if found is not None:
                return name, found
    return None


def mutated(old: str, new: str) -> Callable[..., Any]:
    """A copy of the shipped function with one place changed."""
    source = textwrap.dedent(inspect.getsource(shipped.cuts))
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in cuts"
    space: dict[str, Any] = {"Any": Any}
    exec(source.replace(old, new), space)
    return space["cuts"]


def eq4_as_printed(w: Any, a: Any, s: Any, e: Any) -> tuple[Any, Any]:
    """M14 Eq. 4 without the cases of T1: tau_act = 1 - a/(w-s), tau_esc = 1 - (e-a)/s, cut to [0, 1]."""
    q_act = a / (w - s) if w > s else 1
    q_ask = (e - a) / s if s > 0 else 1
    return max(0, min(1, q_act)), max(0, min(1, q_ask))


@pytest.mark.parametrize("case", [PERFECT, FALLIBLE], ids=["T1", "T5"])
def test_the_shipped_cuts_are_optimal_over_all_real_costs(case: tuple) -> None:
    """T1, T5: act iff no dearer than both others, else ask iff no dearer than escalating; None only where it must."""
    assert refutation(shipped.cuts, *case) is None


def test_a_perfect_reviewer_never_gets_none() -> None:
    """T1: two thresholds serve for all costs. T5 needs a reviewer whose rejections cost something."""
    values, _, _, given = PERFECT
    for condition, result, _ in paths(shipped.cuts, values):
        assert result is not None or model_of(*given, condition) is None
    values, _, _, given = FALLIBLE
    nones = [c for c, result, _ in paths(shipped.cuts, values) if result is None]
    assert any(model_of(*given, c) is not None for c in nones)
    assert all(model_of(*given, c, z3.Or(E1 == 0, R == 0)) is None for c in nones)


def test_asking_survives_exactly_where_it_pays() -> None:
    """T1: tau_esc < tau_act iff w > s, a w < e (w - s) and a < w - s; else Chow's, but for the tie s = 0, a = e."""
    values, _, _, given = PERFECT
    survives = z3.And(W > S, A * W < E * (W - S), A < W - S)
    tie = z3.And(S == 0, A == E)
    for condition, result, run in paths(shipped.cuts, values):
        if not isinstance(result, tuple):
            continue  # a path that the two tests above show unreachable
        q_act, q_ask = (x if isinstance(x, Symbol) else Symbol(run, z3.RealVal(x)) for x in result)
        apart = (q_act < q_ask).condition
        assert model_of(*given, W > 0, condition, z3.Not(tie), apart != survives) is None
        chow = z3.If(E < W, q_act.top * W == E * q_act.bottom, q_act.top == q_act.bottom)
        assert model_of(*given, W > 0, condition, z3.Not(survives), z3.Not(chow)) is None


MUTATIONS = {
    "acts where escalating is cheaper": ("if w > e:", "if w < e:"),
    "Eq. 4: no cut of acting at e / w": ("q_act = e / w", "q_act = 1"),
    "the reviewer's misses forgotten": ("(1 - e0) * s + e0 * w", "s"),
    "asks beyond what it costs": ("slope > e - base", "slope < e - base"),
    "a tie goes to escalating": ("if base > e:", "if base >= e:"),
    "asking may end before acting": ("max(q_act, (e - base) / slope)", "(e - base) / slope"),
    "gives up too early": ("turn <= q_act", "turn < q_act"),
    "gives up where asking never pays": ("turn > 1", "turn > 2"),
    "divides by nothing": ("if slope >= 0:", "if slope > 0:"),
    "no regret for a rejected call": ("base = a + e1 * r", "base = a"),
}


@pytest.mark.parametrize(("old", "new"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_mutated_function_is_refuted(old: str, new: str) -> None:
    """Each answer of the prover is checked on the counterexample in exact arithmetic, apart from z3."""
    function = mutated(old, new)
    found = refutation(function, *FALLIBLE)
    assert found is not None
    assert_wrong(function, found[1])


def test_eq_4_as_printed_is_refuted() -> None:
    """M14 Eq. 4 as printed is not optimal: formal.md section 6, erratum 1."""
    found = refutation(eq4_as_printed, *PERFECT)
    assert found is not None
    assert_wrong(eq4_as_printed, found[1])


def assert_wrong(function: Callable[..., Any], model: Any) -> None:
    """The function errs at the model's costs, by expected costs in exact rationals."""
    numbers = [rational(model, x) for x in (W, A, S, E, E0, E1, R, Q)]
    w, a, s, e, e0, e1, r, q = numbers
    arguments = (w, a, s, e) if function is eq4_as_printed else (w, a, s, e, e0, e1, r)
    try:
        result = function(*arguments)
    except ZeroDivisionError:
        return
    costs, reviewer = Costs(a, s, e, w), Reviewer(e0, e1, r)
    if result is None:
        assert shipped.cuts(*arguments) is not None
        return
    q_act, q_ask = result
    chosen = Region.ACT if q <= q_act else Region.ASK if q <= q_ask else Region.ESCALATE
    found = expected_costs(1 - q, costs, reviewer)
    best = min(found, key=lambda kind: found[kind])
    assert chosen is not best or not 0 <= q_act <= q_ask <= 1


def rational(model: Any, x: Any) -> Fraction:
    """The value of a variable in a model."""
    value = model.eval(x, model_completion=True)
    if z3.is_algebraic_value(value):
        value = value.approx(20)
    return Fraction(value.numerator_as_long(), value.denominator_as_long())
