"""Resume: a run that was killed goes on from its trace, nothing recorded done again; imports loop and trace.

Whatever the moment of the kill, what follows is decided by what was recorded before it: a reply is not asked for
again, a result is not computed again, and a call that had started without a recorded end is made again only where
its tool is idempotent, takes a key or says that it never happened; otherwise the model is told that its outcome is
unknown. Source: M1 §1.2.6, row 9.
"""

from __future__ import annotations

from dataclasses import replace

from harnesses.runtime.loop import Harness, answer, proceed, receive, settle
from harnesses.runtime.records import AgentError, Run, ToolCall, ToolResult
from harnesses.runtime.tools import clean
from harnesses.runtime.trace import Replay, head_record

UNKNOWN = (
    "the run was interrupted during this call; whether it took effect is unknown, and it is not made again"
)


def resume(harness: Harness, past: Replay) -> Run:
    """The run from where its trace ends to its own end.

    The harness's trace should append to the same file. AgentError where the harness is not the one that began the
    run, or where the trace ends before the user's request.
    """
    require_same(harness, past)
    run = past.run
    if not any(message.role == "user" for message in run.history):
        raise AgentError(
            "the trace ends before the user's request: nothing was done yet, so start the run anew"
        )
    if run.state.terminated:
        return run
    now = harness.dispatcher.clock.now()  # the time in between is not the run's
    return proceed(harness, _finish_step(harness, replace(run, state=replace(run.state, at=now)), past))


def _finish_step(harness: Harness, run: Run, past: Replay) -> Run:
    """The step that the kill interrupted, to its end."""
    if not past.replies:
        return run
    run = finish_reply(harness, run, past)
    return run if run.state.terminated else finish_calls(harness, run, past)


def finish_reply(harness: Harness, run: Run, past: Replay) -> Run:
    """The run with all that belongs to its newest recorded reply."""
    replies = sum(message.role == "assistant" for message in run.history)
    newest = run.history[-1]
    if replies < len(past.replies) or (newest.role == "assistant" and not newest.calls):
        return receive(harness, run, past.replies[-1])
    return run


def finish_calls(harness: Harness, run: Run, past: Replay) -> Run:
    """The run with a result for every call of its newest reply, recorded ones not computed again."""
    for call in run.pending:
        run = answer(harness, run, call, _recorded(harness, call, past))
    return settle(harness, run)


def _recorded(harness: Harness, call: ToolCall, past: Replay) -> ToolResult | None:
    """The result that the trace has of a call, or that follows from it; None where the call is to be made."""
    attempts = past.attempts.get(call.id, ())
    if not attempts:
        return None
    first, last = attempts[0], attempts[-1]
    if last["kind"] == "ended" and last["wait"] is None:
        return ToolResult(call.id, last["status"], last["content"], max(0.0, last["at"] - first["at"]))
    return _interrupted(harness, call, max(0.0, last["at"] - first["at"]))


def _interrupted(harness: Harness, call: ToolCall, took: float) -> ToolResult | None:
    """What became of a call that started and has no recorded end; None where it is to be made."""
    tool, arguments = harness.dispatcher.tools[call.name], harness.dispatcher.check(call)
    if tool.repeatable or isinstance(arguments, ToolResult):
        return None
    if tool.recover is None:
        return ToolResult(call.id, "error", UNKNOWN, took)
    try:
        answer = tool.recover(**arguments)
    except Exception as error:  # then it says nothing
        return ToolResult(call.id, "error", f"{UNKNOWN} ({type(error).__name__}: {clean(str(error))})", took)
    return None if answer is None else ToolResult(call.id, "ok", clean(answer), took)


def require_same(harness: Harness, past: Replay) -> None:
    """Refuse, with AgentError, a harness that is not the one that began the run."""
    mine = head_record(harness)
    for name, value in mine.items():
        if past.head.get(name) != value:
            raise AgentError(
                f"the trace was begun with another {name}: {past.head.get(name)!r}, not {value!r}; "
                "resume with the harness that began it"
            )
