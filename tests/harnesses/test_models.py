"""Models a harness serves: the readers against enumeration, temperatures, ties, and scores of what is optimal."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from harnesses.case import Case, Effort
from harnesses.context import Context, Message, Sizes, fold
from harnesses.harness import Induced
from harnesses.lookahead import Lookahead
from harnesses.models import (
    StatelessModel,
    bayes_scores,
    naive_scores,
    optimal_scores,
    policy,
    random_scores,
    rule_scores,
    visible_belief,
)
from harnesses.spec import parse_spec
from pomdp.belief import filter_history
from pomdp.library import task
from pomdp.model import POMDP, ModelError

ZERO = Fraction(0)


def case(name: str, horizon: int, context: str, **entries: object) -> Case:
    spec = {"task": f"library:{name}", "horizon": horizon, "discount": 1, "context": context, **entries}
    return Case(parse_spec(spec), Effort(seconds=10.0))


def best(model: POMDP, measure: dict[int, Fraction], left: int) -> Fraction:
    """V* by recursion over histories."""
    return (
        max((score(model, measure, a, left) for a in range(model.num_actions)), default=ZERO)
        if left
        else ZERO
    )


def score(model: POMDP, measure: dict[int, Fraction], a: int, left: int) -> Fraction:
    """Q of an action at a measure, by recursion."""
    total, after = ZERO, {}
    for s, p in measure.items():
        total += p * model.exact.R.row(a).get(s, ZERO)
        for t, q in model.exact.T[a].row(s).items():
            for o, z in model.exact.Z[a].row(t).items():
                part = after.setdefault(o, {})
                part[t] = part.get(t, ZERO) + p * q * z
    return total + sum((best(model, part, left - 1) for part in after.values()), ZERO)


def posteriors(induced: Induced, horizon: int) -> dict[Context, dict[int, dict[int, Fraction]]]:
    """Context -> histories' length -> mass of each state while all actions are alike, by enumeration of histories."""
    model, found = induced.inner, {}
    level = {(): dict(model.exact.start)}
    share = Fraction(1, model.num_actions)
    for t in range(horizon):
        following = {}
        for pairs, measure in level.items():
            context = fold(induced.phi, [Sizes().event(*pair) for pair in pairs])
            here = found.setdefault(context, {}).setdefault(t, {})
            for s, p in measure.items():
                here[s] = here.get(s, ZERO) + p
            for a, name in enumerate(model.actions):
                for s, p in measure.items():
                    for s2, q in model.exact.T[a].row(s).items():
                        for o, z in model.exact.Z[a].row(s2).items():
                            part = following.setdefault((*pairs, (name, model.observations[o])), {})
                            part[s2] = part.get(s2, ZERO) + p * q * z * share
        level = following
    return found


@pytest.mark.parametrize(("name", "context"), [("tiger", "last:1"), ("tiger", "null"), ("tmaze:2", "last:1")])
class Probe:
    """In the place of a look-ahead: the expected reward of an action, times the steps to go."""

    def __init__(self, model: POMDP) -> None:
        self.model = model

    def q(self, measures: np.ndarray, steps: int) -> np.ndarray:
        return measures @ self.model.R.T * steps


@pytest.mark.parametrize("context", ["last:1", "null", "counter:last:1", "last_messages:1"])
@pytest.mark.parametrize("name", ["tiger", "tmaze:2"])
def test_the_bayes_reader_reads_the_exact_posterior_of_time_and_state(name: str, context: str) -> None:
    """Against all histories in exact rationals, all actions having been alike."""
    induced = case(name, 3, context).induced
    model = induced.inner
    found = bayes_scores(induced, Probe(model))  # type: ignore[arg-type]
    known = posteriors(induced, 3)
    for c, shown in enumerate(induced.contexts):
        by_time = known[shown]
        # Runs that are over are asked nothing more.
        over = {s for s in range(model.num_states) if model.states[s] == "end"}
        by_time = {t: {s: p for s, p in part.items() if s not in over} for t, part in by_time.items()}
        mass = sum(sum(part.values()) for part in by_time.values())
        for a in range(model.num_actions):
            row = model.exact.R.row(a)
            exact = sum(
                p * row.get(s, ZERO) * (3 - t) for t, part in by_time.items() for s, p in part.items()
            )
            assert found[c, a] == pytest.approx(float(exact / mass), abs=1e-9)


def test_the_bayes_reader_takes_the_best_action_at_the_start_and_never_claims_too_much() -> None:
    one = case("tiger", 3, "last:1")
    induced = one.induced
    found = bayes_scores(induced, Lookahead.of(one.inner))
    for c, shown in enumerate(induced.contexts):
        by_time = posteriors(induced, 3)[shown]
        mass = sum(sum(part.values()) for part in by_time.values())
        for a in range(induced.model.num_actions):
            exact = sum((score(induced.inner, part, a, 3 - t) for t, part in by_time.items()), ZERO) / mass
            assert found[c, a] <= float(exact) + 1e-9
    assert found[0].max() == pytest.approx(2.72, abs=1e-6)


def test_action_values_are_exact_where_the_controller_was_solved_for() -> None:
    one = case("tiger", 3, "full")
    model = one.spec.task
    ahead = Lookahead.of(one.task)
    start = ahead.q(model.start[None], 3)[0]
    exact = [float(score(model, dict(model.exact.start), a, 3)) for a in range(3)]
    assert start.max() == pytest.approx(2.72, abs=1e-6)
    assert start == pytest.approx(exact, abs=1e-6) or np.all(start <= np.array(exact) + 1e-9)
    # Homogeneous in the measure; one step is the expected reward.
    assert ahead.q(3 * model.start[None], 3)[0] == pytest.approx(3 * start)
    assert ahead.q(model.start[None], 1)[0] == pytest.approx(model.R @ model.start)


def test_without_a_horizon_the_best_score_at_the_start_is_the_optimum() -> None:
    one = Case(
        parse_spec({"task": "library:tiger", "context": "last:1", "discount": "19/20"}), Effort(seconds=10.0)
    )
    ahead = Lookahead.of(one.task)
    assert ahead.q(one.spec.task.start[None], None).max() == pytest.approx(19.3713683, abs=1e-5)


@pytest.mark.parametrize("pairs", list(itertools.product(range(3), range(2), range(3), range(2)))[::5])
def test_the_naive_belief_is_the_filter_of_the_visible_pairs(pairs: tuple[int, int, int, int]) -> None:
    model = task("tiger").model
    history = [(pairs[0], pairs[1]), (pairs[2], pairs[3])]
    events = [Sizes().event(model.actions[a], model.observations[o]) for a, o in history]
    context = Context(tuple(m for event in events for m in (event.call, event.result)))
    assert visible_belief(model, context) == pytest.approx(filter_history(model, history).beliefs[-1])


def test_what_the_naive_reader_does_not_see_moves_its_belief_or_is_passed_over() -> None:
    model = task("tiger").model
    listen, heard = Sizes().event("listen", "tiger-left").call, Sizes().event("listen", "tiger-left").result
    drift = task("drift").model
    flip = Sizes().event("flip", drift.observations[0]).call
    moved = drift.start @ drift.T[drift.action_index("flip")]
    assert visible_belief(model, Context((heard,))) == pytest.approx(model.start)  # the call is gone
    unknown = Message("result", "timeout", 1)
    assert visible_belief(model, Context((listen, unknown))) == pytest.approx(model.start)
    # A call whose result is gone moves the belief: as a stub, before another call, and at the end.
    for messages, times in (((flip, Message("stub", "gone", 1)), 1), ((flip,), 1), ((flip, flip), 2)):
        expected = moved if times == 1 else moved @ drift.T[drift.action_index("flip")]
        assert visible_belief(drift, Context(messages)) == pytest.approx(expected)
    # A note of the harness after a plus changes nothing.
    told = Context((listen, Message("result", "tiger-left+warning", 1)))
    assert visible_belief(model, told) == pytest.approx([0.85, 0.15])


def test_the_naive_reader_scores_a_context_alike_in_every_harness() -> None:
    one = case("tiger", 3, "last:1", model="naive")
    other = case("tiger", 3, "last:2", model="naive", control=["timeout:listen:1/10"])
    rows = []
    for this in (one, other):
        scores = naive_scores(this.induced, Lookahead.of(this.task))
        rows.append({context.text: row for context, row in zip(this.induced.contexts, scores, strict=True)})
    shared = set(rows[0]) & set(rows[1])
    assert len(shared) >= 3
    for text in shared:
        assert rows[0][text] == pytest.approx(rows[1][text])


def test_temperatures_run_from_the_best_in_equal_shares_to_all_alike() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [0.0, -np.inf, 2.0]])
    assert policy(scores, 0.0) == pytest.approx(np.array([[0.5, 0.5, 0], [0, 0, 1]]))
    assert policy(scores, np.inf) == pytest.approx(np.array([[1 / 3] * 3, [0.5, 0, 0.5]]))
    e = np.exp(1.0)
    assert policy(scores, 1.0)[0] == pytest.approx(np.array([e, e, 1.0]) / (2 * e + 1))
    assert policy(scores, 1e-3)[1] == pytest.approx([0, 0, 1])
    assert policy(scores + 1e-12 * np.array([1, 0, 0]), 0.0)[0, 1] == 0.5
    for temperature in (0.0, 0.1, 5.0, np.inf):
        assert policy(1e300 * scores, temperature).sum(axis=1) == pytest.approx(1)


def test_scores_of_the_optimal_policy_choose_it_again() -> None:
    one = case("tiger", 3, "counter:last:2")
    scores = optimal_scores(one.induced, one.pi, np.zeros(one.pi.shape))
    again = policy(scores, 0.0)
    assert one.induced.evaluate(again) == pytest.approx(one.returned, abs=1e-9)
    # Where one action alone is best, it is the one that the policy takes, in contexts that it meets.
    met = sum(measure for measure in one.induced.occupancy(one.pi, 3))
    for c in range(one.induced.num_contexts):
        if met[one.induced.shown == c].sum() > 1e-9 and again[c].max() == 1.0:
            assert one.pi[c].argmax() == again[c].argmax()
    warm = case("tiger", 3, "counter:last:2", model={"kind": "optimal", "temperature": 1e-4})
    assert warm.returned == pytest.approx(one.returned, abs=1e-3)


def test_stronger_models_earn_more_of_the_same_scores_and_random_is_the_limit() -> None:
    earned = [
        case("tiger", 3, "last:2", model={"kind": "bayes", "temperature": t}).returned
        for t in (0, 1, 10, 1e9)
    ]
    assert earned == sorted(earned, reverse=True)
    random = case("tiger", 3, "last:2", model="random")
    assert random.returned == pytest.approx(earned[-1], abs=1e-4)
    assert random_scores(random.induced).shape == random.pi.shape


def test_rules_name_the_action_of_a_context() -> None:
    one = case("tiger", 2, "last:1")
    model = StatelessModel("rules", 0.0, {"listen=tiger-left": "open-right"}, "listen")
    pi = policy(rule_scores(one.induced, model), 0.0)
    for c, context in enumerate(one.induced.contexts):
        expected = "open-right" if context.text == "listen=tiger-left" else "listen"
        assert one.induced.model.actions[pi[c].argmax()] == expected
    with pytest.raises(ModelError, match="nope"):
        rule_scores(one.induced, StatelessModel("rules", 0.0, {}, "nope"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("clever",), "known: optimal"), (("bayes", -1.0), "temperature"), (("bayes", float("nan")), "temperature"),
     (("rules",), "otherwise"), (("bayes", 0.0, {}, "wait"), "otherwise")],
)  # fmt: skip
def test_a_model_that_is_none_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        StatelessModel(*arguments)


def test_a_naive_model_needs_an_action_of_the_task() -> None:
    one = case("tiger", 2, "last:1", tools=["merge:anything=listen|open-left|open-right"])
    with pytest.raises(ModelError, match="naive"):
        naive_scores(one.induced, Lookahead.of(one.task))
