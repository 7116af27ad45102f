"""Loop: the seven steps of a run, as a model step and a tool step that any engine can call; imports all parts.

    1 assemble  2 check  3 call the model  4 parse     `model_step`
    5 validate, permit, execute, append, per call      `tool_step`
    6 end on a final answer, 7 go on                   `run`

Both steps are functions from a run to a later one; what they touch besides is the model, the tools, the clock and
the trace. Every failure is appended to the history, where the model sees it. Source: M1 §1.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import uuid4

from harnesses.context import ContextMap
from harnesses.runtime.assembly import Folding, Reading, assemble
from harnesses.runtime.control import Limits, StallRule
from harnesses.runtime.format import Formatter, chat
from harnesses.runtime.models import Model, ModelFailure, Reply
from harnesses.runtime.parse import as_written, parse
from harnesses.runtime.records import Context, Message, Reason, Run, State, ToolCall, ToolResult
from harnesses.runtime.tools import Dispatcher, clean, refusal
from harnesses.runtime.trace import NoTrace, Trace, context_record, head_record

CORRECTION = "[harness] "  # how the harness's own messages begin


@dataclass(frozen=True)
class Harness:
    """H = (L, T, C, K): this file's loop, the dispatcher's tools, a context map, and control. Source: M1 §1.1.2.

    reading: how the map names and sizes messages. label: what the trace should say beside, such as the task's name.
    """

    model: Model
    dispatcher: Dispatcher
    context_map: ContextMap
    limits: Limits = Limits()
    stall: tuple[StallRule, ...] = (StallRule(),)
    reading: Reading = Reading()
    formatter: Formatter = chat
    trace: Trace = field(default_factory=NoTrace)
    label: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def schema_tokens(self) -> int:
        """What the tools' schemas add to every context."""
        return self.dispatcher.schema_tokens(self.reading.tokens)

    def context(self, history: Sequence[Message]) -> Context:
        """phi(history): what the model would be shown now."""
        return assemble(history, self.context_map, self.reading, self.schema_tokens, self._folding)

    @cached_property
    def _folding(self) -> Folding:
        return Folding()


def run(harness: Harness, request: str, system: str = "") -> Run:
    """A whole run from a user's request to its end; `termination_reason` of the state says why it ended."""
    return proceed(harness, start(harness, request, system))


def start(harness: Harness, request: str, system: str = "") -> Run:
    """A run with its pinned head and full budgets, before its first step."""
    keyed = any(tool.keyed for tool in harness.dispatcher.tools.values())
    name = uuid4().hex if keyed else ""
    state = State(harness.limits.budget, at=harness.dispatcher.clock.now(), run=name)
    begun = write(harness, Run((), state), "begin", **head_record(harness))
    if system:
        begun = append(harness, begun, "system", system)
    return append(harness, begun, "user", request)


def proceed(harness: Harness, run: Run) -> Run:
    """Steps until the run ends."""
    while not run.state.terminated:
        run = model_step(harness, run)
        if not run.state.terminated:
            run = tool_step(harness, run)
    return run


def model_step(harness: Harness, run: Run) -> Run:
    """Assemble, check, call, parse: after it the run has ended, or its calls are `pending`."""
    run = replace(run, state=_at(harness, run.state))
    try:
        context = harness.context(run.history)
    except Exception as error:  # a map may be anybody's code; the history is whole whatever it does
        fault = f"the context map {harness.context_map.name} failed: {type(error).__name__}: {error}"
        return end(harness, run, Reason.ERROR, fault)
    run = replace(write(harness, run, "context", **context_record(run, context)), context=context)
    stop = harness.limits.violation(run.state, context)
    if stop is not None:
        return end(harness, run, *stop)
    run, reply = _ask(harness, run, context)
    if isinstance(reply, str):
        return end(harness, run, Reason.ERROR, reply)
    return receive(harness, _charge(harness, run, context, reply), reply)


def tool_step(harness: Harness, run: Run) -> Run:
    """One result for every pending call, corrective messages, and the end of a run that stalled."""
    for call in run.pending:
        run = answer(harness, run, call)
    return settle(harness, run)


def receive(harness: Harness, run: Run, reply: Reply) -> Run:
    """Step 4 and 6 for a reply: append it, with a correction where it does not parse; end on a final answer.

    Where the reply is in the history already, only what is missing after it is added.
    """
    made = len(run.calls)
    known = run.history[-1] if sum(m.role == "assistant" for m in run.history) == run.state.step else None
    parsed = parse(reply, made + 1)
    if known is None:
        if isinstance(parsed, str):
            run = append(harness, run, "assistant", clean(as_written(reply)), about=f"m{run.state.step}")
        else:
            run = append(harness, run, "assistant", clean(reply.text), calls=parsed)
    if not isinstance(parsed, str):
        return run if parsed else end(harness, run, Reason.COMPLETED)
    fault = f"{CORRECTION}Your reply could not be read and nothing was done: {clean(parsed)}"
    return settle(harness, append(harness, run, "user", fault, about=run.history[-1].about))


def answer(harness: Harness, run: Run, call: ToolCall, known: ToolResult | None = None) -> Run:
    """Step 5 for one call: its result, appended whatever happened. `known`: a result that a trace has already."""

    def journal(kind: str, data: dict[str, Any]) -> None:
        nonlocal run
        run = write(harness, run, kind, **data)

    refused = None if known else _refused(harness, run, call)
    result = known or refused or harness.dispatcher.dispatch(call, journal, run.state.run)
    if refused is None:
        run = replace(run, state=_spent(run.state, tool_calls=1))
    return append(harness, run, "tool", result.content, result=result)


def settle(harness: Harness, run: Run) -> Run:
    """After the results of a step: count failing steps, correct a model that repeats itself, end a stalled run."""
    run = replace(run, state=replace(run.state, consecutive_errors=failing_steps(run.history)))
    subjects = _newest(run.history)
    said = {(message.about, message.content) for message in run.history if message.about in subjects}
    stalled = ""
    for subject in subjects:
        for rule in harness.stall:
            times = rule.count(run.history, subject)
            advice = rule.advice(times)
            if times >= rule.stop:
                stalled = stalled or f"{subject}: {rule.mode} count {times}, the limit is {rule.stop}"
            elif advice and (subject, CORRECTION + advice) not in said:
                run = append(harness, run, "user", CORRECTION + advice, about=subject)
    return end(harness, run, Reason.STALLED, stalled) if stalled else run


def end(harness: Harness, run: Run, reason: Reason, detail: str = "") -> Run:
    """The run with its reason, which the trace records last."""
    state = replace(run.state, termination_reason=reason, detail=clean(detail))
    return write(harness, replace(run, state=state), "end", state=state.json())


def append(harness: Harness, run: Run, role: Any, content: str, **fields: Any) -> Run:
    """The run with one more message, recorded with the state that goes with it."""
    message = Message(role, content, run.tick + 1, **fields)
    run = replace(run, history=(*run.history, message))
    return write(harness, run, "message", message=message.json(), state=run.state.json())


def write(harness: Harness, run: Run, kind: str, **data: Any) -> Run:
    """The run after one more record of its trace; timestamps are its ticks."""
    at = harness.dispatcher.clock.now()
    harness.trace.write({"t": run.tick + 1, "at": at, "kind": kind, **data})
    return replace(run, tick=run.tick + 1)


def failing_steps(history: Sequence[Message]) -> int:
    """Steps since the last one with a result that is ok: replies that did not parse, and steps without success."""
    failing = 0
    for message in reversed(history):
        if message.result is not None and message.result.status == "ok":
            break
        failing += message.role == "assistant"
    return failing


def _ask(harness: Harness, run: Run, context: Context) -> tuple[Run, Reply | str]:
    """Step 3: the reply, or in words why there is none; passing failures are retried."""
    messages, schemas = harness.formatter(context.messages), harness.dispatcher.schemas
    attempt = 1
    while True:
        transient = False
        try:
            reply = harness.model.reply(messages, schemas, run.state.step)
            if isinstance(reply, Reply):
                return run, reply
            failure = f"it gave a {type(reply).__name__}, no Reply"
        except ModelFailure as error:
            failure, transient = str(error), error.transient
        except Exception as error:  # a provider's library may raise anything
            failure = f"{type(error).__name__}: {error}"
        wait = harness.dispatcher.retry.wait(attempt) if transient else None
        run = write(harness, run, "model_failure", attempt=attempt, detail=clean(failure), wait=wait)
        if wait is None:
            return run, f"the model {harness.model.name} failed: {failure}"
        harness.dispatcher.clock.sleep(wait)
        attempt += 1


def _charge(harness: Harness, run: Run, context: Context, reply: Reply) -> Run:
    """The step, its tokens and its cost, spent; recorded with the reply before anything follows from it."""
    tokens = reply.tokens
    if tokens is None:
        tokens = context.token_estimate + harness.reading.tokens(as_written(reply))
    state = replace(
        _spent(run.state, steps=1, tokens=tokens, cost=reply.cost or 0.0), step=run.state.step + 1
    )
    calls = [list(raw) for raw in reply.calls]
    said = {"text": reply.text, "calls": calls, "fault": reply.fault}
    spent = {"tokens": tokens, "cost": reply.cost}
    return write(harness, replace(run, state=state), "reply", **said, **spent, state=state.json())


def _refused(harness: Harness, run: Run, call: ToolCall) -> ToolResult | None:
    """The result of a call that control stops before the dispatcher sees it."""
    left = run.state.budget_remaining
    subjects = _newest(run.history)
    for subject in subjects[: subjects.index(call.id) + 1]:
        for rule in harness.stall:
            if rule.mode != "growth" and rule.count(run.history, subject) >= rule.stop:
                return refusal(call, "denied", "not executed: the run has stalled on one call repeated")
    if left.tool_calls is not None and left.tool_calls <= 0:
        return refusal(
            call, "denied", f"not executed: the budget of {harness.limits.tool_calls} tool calls is spent"
        )
    seconds = _at(harness, run.state).budget_remaining.seconds
    if seconds is not None and seconds <= 0:
        return refusal(call, "denied", f"not executed: the {harness.limits.seconds:g} s of the run are over")
    return None


def _newest(history: Sequence[Message]) -> list[str]:
    """The subjects of the newest reply: its calls, or itself where nothing parsed."""
    reply = next(message for message in reversed(history) if message.role == "assistant")
    return [call.id for call in reply.calls] or [str(reply.about)]


def _spent(state: State, **spent: float) -> State:
    return replace(state, budget_remaining=state.budget_remaining.less(**spent))


def _at(harness: Harness, state: State) -> State:
    """The state with the time that has passed spent."""
    now = harness.dispatcher.clock.now()
    return replace(_spent(state, seconds=now - state.at), at=now)
