"""A planted fault is seen, laws agree, an episode of a million is found again, and what cannot run is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harnesses import langgraph_adapter
from harnesses.conformance import served as served_module
from harnesses.conformance.cells import cell
from harnesses.conformance.compare import Conformance, differences
from harnesses.conformance.episode import Engine, engine, running, tabular
from harnesses.conformance.served import Served
from harnesses.constructors.catalogue import parse_part
from harnesses.context import Sizes, parse_map
from harnesses.harness import Harness
from harnesses.models import StatelessModel
from harnesses.runtime.records import AgentError, ToolCall
from harnesses.runtime.tools import Dispatcher
from harnesses.spec import Spec, parse_spec
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.rng import DYNAMICS, words

BOTH: list[Engine] = ["runtime", "langgraph"]


def spec(**parts: Any) -> Spec:
    return parse_spec(
        {"task": "library:tmaze:4", "horizon": 5, "model": "random", "context": "last:2", **parts}, Path()
    )


def test_one_draw_shifted_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Conformance.of(spec(control=["timeout:*:1/5"]))
    assert ready.compare(BOTH, range(20)).differences == 0

    def shifted(seed: Any, stream: Any, episode: Any, step: Any) -> Any:
        return words(seed, stream, episode, step + (stream == DYNAMICS and step == 2))

    monkeypatch.setattr(served_module, "words", shifted)
    found = ready.compare(BOTH, range(20))
    assert found.differences > 0 and found.first is not None and found.first.step == 2


def test_one_message_that_the_adapter_drops_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Conformance.of(spec(loop=["malformed:1/4"]))
    kept = langgraph_adapter.to_values

    def forgetful(run: Any, known: int = 0) -> Any:
        values = kept(run, known)
        lost = [m for m in values["messages"] if str(m.content).startswith("[harness]")][-1:]
        return {**values, "messages": [m for m in values["messages"] if m not in lost]}

    monkeypatch.setattr(langgraph_adapter, "to_values", forgetful)
    found = ready.compare(BOTH, range(20))
    assert found.differences > 0 and found.first is not None and found.first.engine == "langgraph"


@pytest.mark.parametrize("name", BOTH)
def test_one_denial_ignored_is_seen(name: Engine) -> None:
    class Careless(Dispatcher):
        calls = 0

        def check(self, call: ToolCall) -> Any:
            checked = super().check(call)
            if getattr(checked, "status", None) != "denied":
                return checked
            Careless.calls += 1
            return {} if Careless.calls == 3 else checked

    ready = Conformance.of(spec(control=["deny:go:1/5"]))
    object.__setattr__(ready, "served", Served(ready.table, Careless))
    found = ready.compare([name], range(20))
    assert Careless.calls > 3 and 0 < found.differences < 40
    assert found.first is not None and found.first.what == "observation"


def test_an_engine_that_breaks_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Conformance.of(spec())

    def broken(*_: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(Served, "begin", broken)
    found = ready.compare(["runtime"], range(3))
    assert found.differences == 3 and found.first is not None
    assert found.first.text == (
        "runtime, episode 0, at the end: the run RuntimeError: out of order, not a run to its end"
    )


@pytest.mark.parametrize(
    "row",
    [
        ("tmaze:4", "last:1", "failures"),
        ("repo_repair", "counter:last:1", "denied"),
        ("flip:2", "summary:count:2", "unknown"),
        ("ticket_routing", "oldest_first:60", "budget"),
        ("tiger", "last_messages:3", "total"),
    ],
    ids=" ".join,
)
def test_the_table_earns_what_the_policy_earns_on_the_induced_pomdp(row: tuple[str, str, str]) -> None:
    """J of the agent of the table against J on M_H, and Monte Carlo of the same draws against both."""
    ready = Conformance.of(cell(*row))
    assert ready.tabled == pytest.approx(ready.formal, abs=1e-12)
    found = ready.simulate(40_000)
    assert found.standard_error is not None
    assert abs(found.mean - ready.formal) < 4 * found.standard_error + 1e-9


def test_an_episode_of_a_million_is_run_again_in_langgraph() -> None:
    number = 731_204
    ready = Conformance.of(spec(control=["timeout:*:1/5", "stall:2-3"], loop=["malformed:1/10:1/20"]))
    simulated = ready.simulate(1_000_000, keep=[number])
    assert simulated.episodes == 1_000_000
    expected = tabular(ready.table, simulated.trajectories[number])
    assert ready.reference([number])[number] == expected
    for name in BOTH:
        with engine(name) as saver:
            found = running(ready.served, ready.policy(0, number), saver)
            assert differences(name, number, expected, found) == []
            if saver is not None:
                graph = langgraph_adapter.ReactGraph(
                    ready.served.harness(ready.policy(0, number), _NoTrace()), saver
                )
                moments = graph.checkpoints(f"0-{number}")
    lengths = [len(moment.run.history) for moment in moments]
    assert lengths == sorted(lengths) and moments[-1].run.state.termination_reason == expected.reason
    replies = sum(message.role == "assistant" for message in moments[-1].run.history)
    assert replies == len(expected.steps)


class _NoTrace:
    def write(self, record: Any) -> None:
        """Forget it."""


def test_rewards_are_those_of_the_task_to_the_last_bit() -> None:
    ready = Conformance.of(spec(task="library:repo_repair", horizon=4))
    found = running(ready.served, ready.policy(0, 5))
    expected = ready.reference([5])[5]
    assert [step.reward for step in found.steps] == [step.reward for step in expected.steps]
    rewards = set(np.asarray(ready.spec.task.R).ravel().tolist())
    assert len(found.steps) > 1 and all(step.reward in rewards for step in found.steps)


def test_a_denial_costs_nothing_where_nothing_could_be_earned_from_the_start() -> None:
    task = POMDP.build(
        states=["s"], actions=["a", "b"], observations=["o"], T=[[[1]]] * 2, Z=[[[1]]] * 2, R=[[0], [1]], discount=0.9
    )  # fmt: skip
    tools, control = (parse_part("select:a"),), (parse_part("deny:a:2"),)
    harness = Harness(tools, control, (), parse_map("last:1"))
    asked = Spec("made", task, Criterion.of(task, "0.9", 2), harness, StatelessModel("random"), Sizes())
    assert Conformance.of(asked).compare(BOTH, range(3)).differences == 0


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"loop": ["malformed:1/10:0:hidden"]}, "leave `hidden` out"),
        ({"control": ["call_budget:3:go"]}, "a running harness counts all"),
        ({"control": ["deny:go", "timeout:go:1/10"]}, "deny:go stands inside timeout:go:1/10"),
        ({"control": ["stall:2-3", "stall:3-4"]}, "has one stall; keep one"),
        ({"context": "summary:count:error=1/10"}, "errs at random"),
        ({"horizon": None, "discount": 0.9}, "needs a number of steps"),
    ],
)
def test_what_no_running_harness_can_do_is_refused_in_one_line(parts: dict[str, Any], says: str) -> None:
    data = {"task": "library:tmaze:4", "horizon": 5, "model": "random", "context": "last:2", **parts}
    with pytest.raises((AgentError, ModelError)) as caught:
        Conformance.of(parse_spec({k: v for k, v in data.items() if v is not None}, Path()))
    assert says in str(caught.value) and "\n" not in str(caught.value)
