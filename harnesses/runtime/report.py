"""Report: what a trace shows, step by step, and where a control fired; imports trace, assembly.

Steps are numbered from 1, the first model call. Source: M1 Lab 1a (traces with a note of where each control fired).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from harnesses.context import ContextMap
from harnesses.runtime.assembly import Reading, assemble
from harnesses.runtime.records import AgentError, Message
from harnesses.runtime.trace import Replay

WIDTH = 76  # characters shown of a text


def summary(past: Replay) -> dict[str, Any]:
    """The run in figures: reason, steps, results by status, tokens dropped, final answer (None where there is none)."""
    run = past.run
    last = run.history[-1] if run.history else None
    done = run.state.termination_reason == "completed"
    return {
        "model": past.head["model"],
        "map": past.head["map"],
        "reason": run.state.termination_reason,
        "detail": run.state.detail,
        "steps": run.state.step,
        "tool_calls": len(run.calls),
        "results": dict(sorted(Counter(result.status for result in run.results.values()).items())),
        "dropped_tokens": sum(removal.tokens for removal in run.context.dropped) if run.context else 0,
        "answer": last.content if last is not None and done else None,
        "torn": past.torn,
        "fired": fired(past),
    }


def fired(past: Replay) -> list[str]:
    """One line for every moment at which a control acted."""
    return [f"step {step}: {what}" for step, what in _fired(past)]


def _fired(past: Replay) -> Iterator[tuple[int, str]]:
    step, dropped, attempts = 0, 0, past.attempts
    for record in past.records:
        if record["kind"] == "context":
            step = record["step"] + 1
            removed = len(past.contexts[record["step"]].dropped)
            if removed > dropped:
                new = past.contexts[record["step"]].dropped[dropped:]
                names = ", ".join(_named(past, removal.message) for removal in new)
                yield step, f"trimmed by {new[0].rule}: {sum(r.tokens for r in new)} tokens of {names}"
            dropped = removed
        elif record["kind"] == "message":
            message = Message.of(record["message"])
            result = message.result
            if message.about is not None and message.role == "user":
                yield step, f"corrective message: {_short(message.content)}"
            elif result is not None and result.status != "ok":
                told = result.call_id in attempts or result.content.startswith("not executed")
                yield step, f"{result.status}{'' if told else ', not executed'}: {_short(result.content)}"
        elif record["kind"] in ("ended", "model_failure") and record["wait"] is not None:
            yield step, f"attempt {record['attempt']} failed, again after {record['wait']:g} s"
        elif record["kind"] == "end" and record["state"]["termination_reason"] != "completed":
            yield step, f"ended: {record['state']['termination_reason']} ({record['state']['detail']})"


def transcript(past: Replay) -> str:
    """The run as text: each call with its result, tokens shown, and the end."""
    results, lines, step = past.run.results, [], 0
    for message in past.run.history:
        if message.role == "assistant":
            context = past.contexts.get(step)
            step += 1
            size = f"{context.token_estimate:>6} tokens" if context else ""
            said = _short(message.content) if message.content else ""
            lines.append(f"step {step:>3} {size}  {said}".rstrip())
            for call in message.calls:
                result = results.get(call.id)
                outcome = f"{result.status:<7} {_short(result.content)}" if result else "no result yet"
                lines.append(f"           {call.id}: {call.name} {_short(str(dict(call.arguments)))}")
                lines.append(f"               {outcome}")
    end = past.run.state
    lines += [f"  control  {line}" for line in fired(past)]
    lines.append(
        f"end: {end.termination_reason or 'the trace stops here'}{f' ({end.detail})' if end.detail else ''}"
    )
    return "\n".join(lines)


def recomputed(past: Replay, phi: ContextMap, reading: Reading | None = None) -> int:
    """How many recorded contexts phi gives again from the history before them. AgentError at the first difference."""
    history: list[Message] = []
    for record in past.records:
        if record["kind"] == "message":
            history.append(Message.of(record["message"]))
        elif record["kind"] == "context":
            known = past.contexts[record["step"]]
            found = assemble(history, phi, reading or Reading(), known.schema_tokens)
            if found != known:
                raise AgentError(
                    f"the context of step {record['step'] + 1} is not what {phi.name} makes of the history"
                )
    return len(past.contexts)


def _named(past: Replay, id: str) -> str:
    """A message of a removal, as the call that it belongs to."""
    call = next((call for call in past.run.calls if call.id == id.removesuffix("=")), None)
    if call is None:
        return id
    return f"{id} ({call.name} {', '.join(_short(str(value), 24) for value in call.arguments.values())})"


def _short(text: str, width: int = WIDTH) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 3]}..."
