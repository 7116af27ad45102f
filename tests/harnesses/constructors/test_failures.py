"""Failing calls: deny, timeout, retry and malformed against their definitions, attempt by attempt."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors import call_budget, deny, difference, malformed, retry, timeout
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import distributions, pomdps

ONE = Fraction(1)
models = pomdps(max_states=2, min_actions=2, max_actions=2, max_observations=2)
shares = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)])
charges = st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(2)])


def timed(oracle: Any, model: POMDP, p: Fraction, effect: Fraction, charge: Fraction) -> Any:
    """The rules of a timeout of action 0, spelt out: did it time out, and did it act all the same?"""
    rules, over = oracle.rules(model), oracle.absorbing(model)

    def step(s: Any, a: str) -> Any:
        for t, o, q in rules.step(s, a):
            if a != "0" or s in over:
                yield t, o, q
                continue
            yield t, o, (1 - p) * q
            yield t, "timeout", p * effect * q
            yield s, "timeout", p * (1 - effect) * q

    def reward(s: Any, a: str) -> Fraction:
        if a != "0" or s in over:
            return rules.reward(s, a)
        return (1 - p) * rules.reward(s, a) + p * effect * rules.reward(s, a) - p * (1 - effect) * charge

    return oracle.Rules(rules.start, rules.actions, step, reward)


@given(pomdps())
def test_a_timeout_that_never_happens_is_the_identity(model: POMDP) -> None:
    found = timeout(model, "*", 0, "1/2", 3)
    assert difference(model, found) is None and found.observations == model.observations
    assert difference(model, malformed(model, 0, 1)) is None


@given(models, shares, shares, charges)
def test_a_timeout_is_its_definition(
    oracle: Any, model: POMDP, p: Fraction, effect: Fraction, charge: Fraction
) -> None:
    found = timeout(model, "0", p, effect, charge)
    assert oracle.process(found, 3) == oracle.process(timed(oracle, model, p, effect, charge), 3)


@st.composite
def idempotent(draw: st.DrawFn) -> POMDP:
    """A model whose action 0 moves every state to a distribution on states that it then leaves alone."""
    S = 3
    fixed = draw(st.sets(st.integers(0, S - 1), min_size=1))
    T = [
        [{s: ONE} if s in fixed else draw(distributions(S, support=sorted(fixed))) for s in range(S)],
        [draw(distributions(S)) for _ in range(S)],
    ]
    Z = [[draw(distributions(2)) for _ in range(S)] for _ in range(2)]
    R = [[draw(st.integers(-3, 3)) for _ in range(S)] for _ in range(2)]
    return POMDP.build(states=S, actions=2, observations=2, T=T, Z=Z, R=R, start=draw(distributions(S)))


def attempts(
    oracle: Any, model: POMDP, r: int, p: Fraction, effect: Fraction, costs: tuple[Fraction, Fraction]
) -> Any:
    """Action 0 tried until it answers or r further attempts are spent: a tree of attempts, each on its own state."""
    rules, over = oracle.rules(model), oracle.absorbing(model)

    def tries(s: Any, left: int, acted: bool) -> Any:
        """(state, observation, probability, did it act, further attempts)."""
        for t, o, q in rules.step(s, "0"):
            yield t, o, (1 - p) * q, True, 0
        missed = [(s, p * (1 - effect), acted)]
        missed += [(t, p * effect * q, True) for t, _, q in rules.step(s, "0")]
        for t, q, done in missed:
            if not left:
                yield t, "timeout", q, done, 0
            elif q:
                for u, o, w, ever, more in tries(t, left - 1, done):
                    yield u, o, q * w, ever, more + 1

    def step(s: Any, a: str) -> Any:
        if a != "0" or s in over:
            yield from rules.step(s, a)
        else:
            yield from ((t, o, q) for t, o, q, _, _ in tries(s, r, False))

    def reward(s: Any, a: str) -> Fraction:
        if a != "0" or s in over:
            return rules.reward(s, a)
        total = Fraction(0)
        for _, _, q, acted, more in tries(s, r, False):
            total += q * ((rules.reward(s, a) if acted else -costs[0]) - more * costs[1])
        return total

    return oracle.Rules(rules.start, rules.actions, step, reward)


@given(idempotent(), st.integers(1, 2), shares, shares, charges, charges)
def test_retrying_is_attempt_by_attempt(
    oracle: Any, model: POMDP, r: int, p: Fraction, effect: Fraction, failed: Fraction, charge: Fraction
) -> None:
    """The reward of the action is earned once however often it acts, the timeout's charge only if it never does."""
    found = retry(model, "0", r, p=p, effect=effect, timeout_charge=failed, charge=charge)
    expected = attempts(oracle, model, r, p, effect, (failed, charge))
    assert oracle.process(found, 2) == oracle.process(expected, 2)


@given(idempotent(), st.integers(1, 4), shares, shares)
def test_free_retries_are_a_rarer_timeout(model: POMDP, r: int, p: Fraction, effect: Fraction) -> None:
    free = retry(model, "0", r, p=p, effect=effect, timeout_charge=1)
    rarer = timeout(model, "0", p ** (r + 1), 1 - (1 - effect) ** (r + 1), 1)
    assert difference(free, rarer) is None
    assert free.states == rarer.states and free.digest == rarer.digest


def test_an_action_that_is_not_idempotent_is_not_retried() -> None:
    """Flipping twice is not flipping once; opening a door draws the tiger's place anew and may be repeated."""
    with pytest.raises(ModelError, match="retry of flip in down: doing it twice differs from doing it once"):
        retry(task("drift").model, "flip", 1, p="1/10")
    assert retry(task("tiger").model, "*", 1, p="1/10").num_actions == 3


@given(models, charges)
def test_a_denial_leaves_the_environment_and_still_spends_budget(
    oracle: Any, model: POMDP, charge: Fraction
) -> None:
    """Every move of a denied action stays where it is in the environment, while the count of calls goes on."""
    over = {model.states[s] for s in oracle.absorbing(model)}
    found = call_budget(deny(model, "0", charge), 2)
    for s, name in enumerate(found.states):
        environment, _, count = name.partition("/")
        moves = [found.states[t] for t in found.exact.T[0].row(s)]
        if environment in over or environment == "stop":
            continue
        assert found.exact.R.row(0).get(s, 0) == -charge
        assert count in ("call-0", "call-1")
        assert moves == (["stop/denied"] if count == "call-1" else [f"{environment}/call-1"])


@given(models)
def test_denied_is_shown_of_what_is_denied_alone(oracle: Any, model: POMDP) -> None:
    rules, over = oracle.rules(model), oracle.absorbing(model)
    expected = oracle.Rules(
        rules.start,
        rules.actions,
        lambda s, a: [(s, "denied", ONE)] if a == "1" and s not in over else rules.step(s, a),
        lambda s, a: Fraction(0) if a == "1" else rules.reward(s, a),
    )
    assert oracle.process(deny(model, "1"), 3) == oracle.process(expected, 3)


@given(models, shares, charges)
def test_a_reply_that_does_not_parse_is_its_definition(
    oracle: Any, model: POMDP, p: Fraction, charge: Fraction
) -> None:
    rules, over = oracle.rules(model), oracle.absorbing(model)

    def step(s: Any, a: str) -> Any:
        yield from ((t, o, q if s in over else (1 - p) * q) for t, o, q in rules.step(s, a))
        if s not in over:
            yield s, "error", p

    def reward(s: Any, a: str) -> Fraction:
        return rules.reward(s, a) if s in over else (1 - p) * rules.reward(s, a) - p * charge

    expected = oracle.Rules(rules.start, rules.actions, step, reward)
    assert oracle.process(malformed(model, p, charge), 3) == oracle.process(expected, 3)


@given(models, shares)
def test_hiding_that_a_reply_failed_never_raises_the_value(oracle: Any, model: POMDP, p: Fraction) -> None:
    """garbling: the hidden kernel is the visible one with `error` mapped to a symbol of the action."""
    visible, hidden = malformed(model, p), malformed(model, p, visible=False)
    assert hidden.observations == model.observations
    assert oracle.best(hidden, ONE, 3) <= oracle.best(visible, ONE, 3)


def test_a_draw_from_z_instead_of_a_fixed_symbol_would_be_information(oracle: Any) -> None:
    """The false variant: showing what the untouched state would show, a failed call still tells its answer."""
    tiger = task("tiger").model
    rules = oracle.rules(tiger)
    seen = {s: list(rules.step(s, "listen")) for s in range(2)}

    def step(s: Any, a: str) -> Any:
        yield from ((t, o, q / 2) for t, o, q in rules.step(s, a))
        yield from ((s, o, q / 2) for _, o, q in seen[s])

    leaking = oracle.Rules(rules.start, rules.actions, step, lambda s, a: rules.reward(s, a) / 2)
    visible = malformed(tiger, "1/2")
    hidden = malformed(tiger, "1/2", visible=False)
    values = [oracle.best(m, ONE, 3) for m in (hidden, visible, leaking)]
    assert values[0] <= values[1] < values[2]


def test_symbols_can_be_given_and_are_checked() -> None:
    tiger = task("tiger").model
    found = malformed(tiger, 1, visible=False, shows={"listen": "tiger-right"})
    assert [found.observations[o] for o in found.exact.Z[0].row(0)] == ["tiger-right"]
    with pytest.raises(ModelError, match="no observation 'roar'"):
        malformed(tiger, 1, visible=False, shows={"listen": "roar"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m: timeout(m, "listen", "3/2"), "timeout p is 3/2, not a probability"),
        (lambda m: timeout(m, "listen", 1, 0, -1), "timeout charge is -1; it is subtracted"),
        (lambda m: retry(m, "listen", 0, p=0), "retry r is 0; give a whole number of at least 1"),
        (lambda m: malformed(m, "often"), "malformed p: 'often' is not a number"),
        (lambda m: deny(m, "fly"), "no action matches 'fly'"),
    ],
)
def test_wrong_arguments_are_named(wrong: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        wrong(task("tiger").model)


def test_a_run_that_is_over_neither_times_out_nor_pays() -> None:
    model = malformed(timeout(deny(task("repo_repair").model, "read-file", 1), "*", "1/2", 0, 1), "1/2", 1)
    assert model.terminal[model.state_index("end")]
