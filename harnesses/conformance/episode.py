"""Episode: one run as its steps, in the tabular simulator, the minimal harness and LangGraph; imports all engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from harnesses.conformance.policy_model import PolicyModel
from harnesses.conformance.reading import CORRECTION, UNREAD, TaskReading, intended, read
from harnesses.conformance.served import Served
from harnesses.conformance.table import Table
from harnesses.constructors.base import ERROR, STOPPED
from harnesses.constructors.limits import CONSECUTIVE, WARNING
from harnesses.context import Event, Removal, fold
from harnesses.runtime.assembly import pieces
from harnesses.runtime.loop import end, model_step, start, tool_step
from harnesses.runtime.models import Model, Reply
from harnesses.runtime.records import Message, Reason, Run
from pomdp.simulate import Trajectory

Engine = Literal["runtime", "langgraph", "sqlite"]
ENGINES: tuple[Engine, ...] = ("runtime", "langgraph", "sqlite")
REQUEST = "Earn as much as you can."


class Gone(NamedTuple):
    """A removal: which event's call (0) or result (1), how many tokens, by which rule."""

    event: int
    half: int
    tokens: int
    rule: str


@dataclass(frozen=True)
class Step:
    """What one step of a run was, in every engine alike; `executed` is the action that reached the world."""

    context: str
    tokens: int
    dropped: tuple[Gone, ...]
    action: str
    observation: str
    executed: str | None
    reward: float


@dataclass(frozen=True)
class Episode:
    """The steps of a run and why it ended."""

    steps: tuple[Step, ...]
    reason: Reason


def tabular(table: Table, path: Trajectory) -> Episode:
    """The steps of a trajectory of the tabular simulator, up to where the run is over."""
    sizes, model = table.split.spec.sizes, table.model
    steps: list[Step] = []
    history: list[Event] = []
    asked: list[str] = []
    k = 0
    for t in range(table.split.steps):
        reason = Reason.COMPLETED if t and int(path.states[t]) in table.over else table.ends[k]
        if reason is not None:
            return Episode(tuple(steps), reason)
        m, o = int(path.actions[t]), int(path.observations[t])
        move, observation = table.moves[m], model.observations[o]
        asked.append(move.action)
        if _warned(table, asked):
            observation += f"+{WARNING}"
        chosen = fold(table.phi, history)
        gone = tuple(_gone(removal) for removal in chosen.dropped)
        executed = move.action if move.what == "call" else None
        reward = float(path.rewards[t])
        context = table.contexts[table.shown[k]]
        steps.append(Step(context.text, chosen.tokens, gone, move.action, observation, executed, reward))
        plain = sizes.event(move.action, observation)
        history.append(Event(plain.call._replace(id=(t, 0)), plain.result._replace(id=(t, 1))))
        k = int(table.follow[k, m, o])
    if int(path.states[table.split.steps]) in table.over:
        return Episode(tuple(steps), Reason.COMPLETED)
    return Episode(tuple(steps), Reason.STALLED if table.ends[k] is Reason.STALLED else Reason.STEP_LIMIT)


def _warned(table: Table, asked: Sequence[str]) -> bool:
    """Whether the newest call is the one at which the loop detector warns."""
    stall = table.split.stall
    if stall is None:
        return False
    if stall.mode == CONSECUTIVE:
        times = next((i for i, name in enumerate(reversed(asked)) if name != asked[-1]), len(asked))
    else:
        times = asked.count(asked[-1])
    return times == stall.warn and times < stall.stop


def _gone(removal: Removal) -> Gone:
    """A removal whose message has its place in the history as its id."""
    event, half = cast("tuple[int, int]", removal.message.id)
    return Gone(event, half, removal.tokens, removal.rule)


@dataclass
class _Recorder:
    """A trace that keeps what was shown at each step, and tells the world which step it is."""

    served: Served
    shown: dict[int, tuple[int, list[list[Any]]]] = field(default_factory=dict)
    _last: list[list[Any]] = field(default_factory=list)

    def write(self, record: dict[str, Any]) -> None:
        """Take one record."""
        if record["kind"] == "context":
            total, schemas, _ = record["tokens"]
            self._last = [*self._last[: record["keep_dropped"]], *record["dropped"]]
            self.shown[record["step"]] = (total - schemas, self._last)
            self.served.step = record["step"]


@dataclass(frozen=True)
class _Listening:
    """The policy, and what it read at each step."""

    policy: PolicyModel
    heard: dict[int, str] = field(default_factory=dict)
    name: str = "policy"

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """The policy's reply."""
        self.heard[step] = read(messages, self.policy.names)
        return self.policy.reply(messages, tools, step)


@contextmanager
def engine(name: Engine, folder: str | None = None) -> Iterator[Any]:
    """A saver for LangGraph, None for the minimal harness."""
    if name == "runtime":
        yield None
        return
    from harnesses.langgraph_adapter import memory_saver, sqlite_saver

    with memory_saver() if name == "langgraph" else sqlite_saver(f"{folder}/threads.sqlite") as saver:
        yield saver


def checkpoints(served: Served, policy: PolicyModel, saver: Any) -> list[dict[str, Any]]:
    """The checkpoints of a run that was made with this saver, oldest first: super-step, node, messages, the newest."""
    from harnesses.langgraph_adapter import ReactGraph

    graph = ReactGraph(served.harness(policy, _Recorder(served)), saver)
    found = []
    for step, node, run in graph.checkpoints(_thread(policy)):
        newest = run.history[-1]
        said = newest.content or ", ".join(call.name for call in newest.calls)
        found.append({"super_step": step, "after": node, "messages": len(run.history), "newest": said})
    return found


def _thread(policy: PolicyModel) -> str:
    return f"{policy.seed}-{policy.episode}"


def running(served: Served, policy: PolicyModel, saver: Any = None, react: Any = None) -> Episode:
    """The steps of a run in the minimal harness, or with a saver in LangGraph; `react` is its graph class."""
    served.begin(policy.seed, policy.episode)
    recorder, listening = _Recorder(served), _Listening(policy)
    if saver is None:
        run = _looped(served, listening, recorder)
    else:
        from harnesses.langchain_model import AsChatModel, LangChainModel
        from harnesses.langgraph_adapter import ReactGraph

        chat = LangChainModel(AsChatModel(listening), listening.name)
        graph = (react or ReactGraph)(served.harness(chat, recorder), saver, lambda: served.over)
        run = graph.run(REQUEST, thread=_thread(policy))
    return _episode(served, run, recorder, listening)


def _looped(served: Served, model: Model, recorder: _Recorder) -> Run:
    harness = served.harness(model, recorder)
    run = start(harness, REQUEST)
    while not run.state.terminated:
        run = model_step(harness, run)
        if not run.state.terminated:
            run = tool_step(harness, run)
        if served.over and not run.state.terminated:
            run = end(harness, run, Reason.COMPLETED)
    return run


def _episode(served: Served, run: Run, recorder: _Recorder, listening: _Listening) -> Episode:
    """The steps of a run that has ended."""
    reason = run.state.termination_reason
    assert reason is not None
    number = {id: i for i, id in enumerate(pieces(run.history))}
    replies = [message for message in run.history if message.role == "assistant"]
    steps = []
    for t, reply in enumerate(replies):
        stopped = reason is Reason.STALLED and t + 1 == len(replies)
        tokens, dropped = recorder.shown[t]
        gone = tuple(
            Gone(number[id.removesuffix("=")], int(id.endswith("=")), size, rule)
            for id, size, rule, _ in dropped
        )
        tool = reply.calls[0].name if reply.calls else intended(reply.content)
        observation, charge = (STOPPED, 0.0) if stopped else _observed(served, run, reply)
        # Where a run begins with nothing left to earn or lose, nothing is charged either.
        reward = served.earned.get(t, 0.0 if served.over and not served.executed else charge)
        action, executed = served.names.get(tool, tool), served.executed.get(t)
        steps.append(Step(listening.heard[t], tokens, gone, action, observation, executed, reward))
    return Episode(tuple(steps), reason)


def _observed(served: Served, run: Run, reply: Message) -> tuple[str, float]:
    """What a reply led to, in the words of the formal side, and what it earned where nothing was executed."""
    split = served.table.split
    about = reply.calls[0].id if reply.calls else reply.about
    said = [m.content for m in run.history if m.role == "user" and m.about == about]
    warnings = sum(text.startswith(CORRECTION) and not text.startswith(UNREAD) for text in said)
    if reply.calls:
        result = run.results[reply.calls[0].id]
        name, _ = TaskReading(split.spec.sizes, served.names).result(result)
        denied = split.denied.get(served.names.get(reply.calls[0].name, ""), 0)
        charge = denied if result.status == "denied" else 0
    else:
        name, charge = ERROR, split.malformed[1]
    return "+".join([name, *[WARNING] * warnings]), -float(charge) if charge else 0.0
