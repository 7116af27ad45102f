"""What a map drops from a log equals what its fold over the same events says, at every step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import fold, parse_map, total_tokens
from harnesses.logs import Head, Outcome, Run, Step, bind, dropped, events
from harnesses.logs.run import untimed
from harnesses.runtime.records import ToolCall
from pomdp.model import ModelError

MAPS = [
    "oldest_first:30",
    "oldest_first:60:partial:2",
    "last:2",
    "last:0",
    "last_messages:3",
    "null",
    "full:4",
    "summary:count:2",
    "summary:latest",
    "counter:last:1",
    "compose:results:last:3",
    "compose:calls:oldest_first:40",
    "compose:unordered:last:2",
    "pin:a/x:last:1",
    "retrieve:a>b/x:last:1",
]


@st.composite
def some_run(draw: st.DrawFn) -> Run:
    """Up to ten steps of small sizes: calls with and without answers, and talk."""
    steps = []
    for number in range(draw(st.integers(0, 10))):
        sizes = st.integers(0, 20)
        kind = draw(st.sampled_from(["answered", "answered", "open", "talk"]))
        call = None if kind == "talk" else ToolCall(f"c{number}", draw(st.sampled_from("ab")), {})
        result = untimed(f"c{number}", "ok", draw(st.sampled_from("xy"))) if kind == "answered" else None
        steps.append(
            Step(
                call=call,
                result=result,
                call_tokens=draw(sizes),
                result_tokens=draw(sizes) if result else 0,
                heard_tokens=draw(sizes) if kind == "talk" else 0,
            )
        )
    return Run("made", "r", None, "", Outcome(), Head("s", "u", draw(st.integers(0, 30))), tuple(steps))


@pytest.mark.parametrize("name", MAPS)
@given(run=some_run())
def test_drops_at_each_step_are_those_of_the_fold(name: str, run: Run) -> None:
    phi = bind(parse_map(name))
    found = dropped(phi, run)
    history = list(events(run))
    answered = {(i, "result") for i, step in enumerate(run.steps) if step.result}
    changes = {gone.step: (gone.results, gone.tokens) for gone in found.gone}
    now = (0, 0)
    for number in range(1, len(history) + 1):
        now = changes.get(number, now)
        context = fold(phi, history[:number])
        gone = {removal.message.id for removal in context.dropped} & answered
        own = sum(m.tokens for m in context.messages if m.role in ("stub", "note"))
        assert now == (len(gone), sum(removal.tokens for removal in context.dropped))
        assert total_tokens(history[:number]) - context.tokens == now[1] - own
    assert (found.results, found.tokens) == now
    assert found.of_results == len(answered)
    assert found.result_tokens <= found.of_result_tokens
    assert found.touched == any(number for _, number in changes.values()) or found.results > 0


@given(run=some_run(), budget=st.integers(0, 120))
def test_a_budget_for_everything_is_smaller_by_the_head(run: Run, budget: int) -> None:
    whole = dropped(bind(parse_map(f"oldest_first:{budget}")), run, count_head=True)
    rest = dropped(bind(parse_map(f"oldest_first:{max(0, budget - run.head.tokens)}")), run)
    assert (whole.gone, whole.result_tokens) == (rest.gone, rest.result_tokens)
    nested = dropped(bind(parse_map(f"counter:oldest_first:{budget}")), run, count_head=True)
    assert nested.results == whole.results


@given(run=some_run(), budget=st.integers(0, 60))
def test_what_users_and_models_say_is_never_dropped_by_trimming(run: Run, budget: int) -> None:
    found = dropped(bind(parse_map(f"oldest_first:{budget}")), run)
    assert found.tokens == found.result_tokens


def test_a_map_that_needs_a_model_is_refused() -> None:
    with pytest.raises(ModelError, match="belief_grid:4 needs a model of the task; .*last:10"):
        bind(parse_map("belief_grid:4"))


def test_a_map_that_needs_a_horizon_is_refused() -> None:
    with pytest.raises(ModelError, match="full:6"):
        bind(parse_map("full"))
