"""Parse: a model's reply as calls, as a final answer, or as a fault in words; imports models and strict_json.

Calls win over text. A reply with one unreadable call is refused whole: nothing of it is executed.
Source: M1 §1.2.2, step 4.
"""

from __future__ import annotations

from typing import Any

from harnesses.runtime.models import RawCall, Reply
from harnesses.runtime.records import ToolCall
from pomdp import strict_json
from pomdp.model import ModelError

DEEPEST = 50  # arguments nested deeper than this are nobody's intention, and break writers of JSON


def parse(reply: Reply, first: int) -> tuple[ToolCall, ...] | str:
    """The calls, with ids from c`first` on, none for a final answer; or the fault of a reply that does not parse."""
    if reply.fault is not None:
        return reply.fault
    calls = []
    for place, raw in enumerate(reply.calls):
        try:
            calls.append(ToolCall(f"c{first + place}", _name(raw), _arguments(raw)))
        except ModelError as error:
            return f"call {place + 1}, {raw.name or 'without a name'}: {error}"
    if not calls and not reply.text.strip():
        return "the reply is empty; call a tool, or answer in words to finish"
    return tuple(calls)


def as_written(reply: Reply) -> str:
    """What the model said, its calls as text: the record of a reply that does not parse."""
    return "\n".join(
        [*([reply.text] if reply.text else []), *(f"{raw.name} {raw.arguments}" for raw in reply.calls)]
    )


def _name(raw: RawCall) -> str:
    if not isinstance(raw.name, str) or not raw.name:
        raise ModelError("a call has no tool name")
    return raw.name


def _arguments(raw: RawCall) -> dict[str, Any]:
    what = f"the arguments of {raw.name}"
    data = strict_json.loads(raw.arguments, what) if raw.arguments.strip() else {}
    if _depth(data) > DEEPEST:
        raise ModelError(f"{what} are nested more than {DEEPEST} deep")
    return strict_json.as_object(data, what)


def _depth(data: Any) -> int:
    level, depth = [data], 0
    while level:
        inner: list[Any] = []
        for item in level:
            inner.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        level, depth = inner, depth + 1
    return depth
