"""Assembly: a history as the events that a context map folds, and what the map keeps as messages again.

The head of a history, the system prompt and the user's request, is pinned: no map sees it. Every call with its
result, and every reply that did not parse with its correction, is an event; a map may remove or replace either half,
and nothing else shortens a context. Imports harnesses.context, records. Source: M1 §1.2.4.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import is_
from typing import NamedTuple

from harnesses.constructors.limits import WARNING
from harnesses.context import Context as Chosen
from harnesses.context import ContextMap, Event, Memory, Removal
from harnesses.context import Message as Item
from harnesses.context.message import REMOVED
from harnesses.context.oldest_first import CUT
from harnesses.runtime.records import AgentError, Context, Dropped, Message, ToolCall, ToolResult

STUB = "[result removed]"  # four tokens, as maps count a stub
CUT_MARK = "[beginning cut] "
ALONE = "[result of an earlier call] "


@dataclass(frozen=True)
class Reading:
    """How calls and results are named and sized for a map: by their text, at four characters a token.

    A run of a formal task replaces it by one with the task's own names and sizes.
    """

    def tokens(self, text: str) -> int:
        """The size of a text. Source: design of the running harness, part 9."""
        return -(-len(text) // 4)

    def call(self, call: ToolCall) -> tuple[str, int]:
        """Name and size of a call: its tool, with the arguments if it has any."""
        arguments = ", ".join(f"{key}={json.dumps(value)}" for key, value in call.arguments.items())
        written = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, separators=(",", ":"))
        return f"{call.name}({arguments})" if arguments else call.name, self.tokens(written)

    def unparsed(self, content: str) -> tuple[str, int]:
        """Name and size of a reply that did not parse."""
        return "malformed", self.tokens(content)

    def result(self, result: ToolResult) -> tuple[str, int]:
        """Name and size of a result: its content, or how it failed, as the formal side names failures."""
        return result.content if result.status == "ok" else result.status, self.tokens(result.content)

    def inserted(self, item: Item, shown: str) -> int:
        """Size of a stub or note, shown as this text."""
        return self.tokens(shown)


class Piece(NamedTuple):
    """One event's records: the reply, its call (None where nothing parsed), the answer, later corrections."""

    reply: Message
    call: ToolCall | None
    answer: Message
    advice: tuple[Message, ...]

    @property
    def text(self) -> str:
        """All that the answer's half of the event says."""
        return "\n".join([self.answer.content, *(message.content for message in self.advice)])


def head(history: Sequence[Message]) -> tuple[Message, ...]:
    """What comes before the first reply: always shown, never given to a map."""
    return tuple(takewhile(lambda message: message.role != "assistant", history))


def pieces(history: Sequence[Message]) -> dict[str, Piece]:
    """The events of a history by id, in order. AgentError for a call without a result."""
    answers = {m.result.call_id: m for m in history if m.result}
    corrections: dict[str, list[Message]] = {}
    for message in history:
        if message.about is not None and message.role == "user":
            corrections.setdefault(message.about, []).append(message)
    found = {}
    for reply in (message for message in history if message.role == "assistant"):
        for call in reply.calls:
            if call.id not in answers:
                raise AgentError(f"call {call.id} has no result yet; a context is assembled between steps")
            found[call.id] = Piece(reply, call, answers[call.id], tuple(corrections.get(call.id, ())))
        if reply.about is not None:
            answer, *advice = corrections[reply.about]
            found[reply.about] = Piece(reply, None, answer, tuple(advice))
    return found


def event(id: str, piece: Piece, reading: Reading) -> Event:
    """The event that a map sees; the first call of a reply carries what the reply says beside it."""
    result = piece.answer.result
    if piece.call is None or result is None:
        call = reading.unparsed(piece.reply.content)
        answer = "error", reading.tokens(piece.answer.content)
    else:
        call = reading.call(piece.call)
        if piece.call is piece.reply.calls[0]:
            call = call[0], call[1] + reading.tokens(piece.reply.content)
        answer = reading.result(result)
    for message in piece.advice:
        answer = f"{answer[0]}+{WARNING}", answer[1] + reading.tokens(message.content)
    return Event(Item("call", *call, id), Item("result", *answer, f"{id}="))


def history_tokens(history: Sequence[Message], reading: Reading) -> int:
    """The size of a whole history, its head included, schemas not."""
    events = [event(id, piece, reading) for id, piece in pieces(history).items()]
    return sum(reading.tokens(m.content) for m in head(history)) + sum(
        item.tokens for pair in events for item in pair
    )


class Folding:
    """`event` and `fold`, going on from the last history where the next one begins with it.

    So a long run reads, sizes and folds each event once.
    """

    def __init__(self) -> None:
        self._last: tuple[ContextMap | None, list[Event], Memory, list[Removal]] = (None, [], None, [])
        self._events: dict[str, tuple[Reading, Piece, Event]] = {}

    def events(self, found: dict[str, Piece], reading: Reading) -> list[Event]:
        """The events of the pieces, in order."""
        known, self._events = self._events, {}
        for id, piece in found.items():
            before = known.get(id)
            if before is None or before[0] is not reading or not _same(before[1], piece):
                before = reading, piece, event(id, piece, reading)
            self._events[id] = before
        return [made for _, _, made in self._events.values()]

    def __call__(self, phi: ContextMap, events: list[Event]) -> Chosen:
        """The same as `fold(phi, events)`."""
        known, seen, memory, dropped = self._last
        if known is not phi or events[: len(seen)] != seen:
            seen, memory, dropped = [], phi.start(), []
        dropped = list(dropped)
        for item in events[len(seen) :]:
            memory, gone = phi.step(memory, item)
            dropped.extend(gone)
        self._last = phi, events, memory, dropped
        chosen = phi.show(memory)
        return Chosen(chosen.messages, (*dropped, *chosen.dropped))


def assemble(
    history: Sequence[Message],
    phi: ContextMap,
    reading: Reading,
    schema_tokens: int = 0,
    folding: Folding | None = None,
) -> Context:
    """phi(history): the context that the model is shown, a pure function of the history. Source: M1 §1.2.2, step 1."""
    found = pieces(history)
    folding = folding or Folding()
    chosen = folding(phi, folding.events(found, reading))
    shown = _Shown(found, reading)
    items = deque(chosen.messages)
    while items:
        first = items.popleft()
        if first.role == "call" and items and items[0].id == f"{first.id}=":
            shown.pair(first, items.popleft())
        else:
            shown.alone(first)
    pinned = head(history)
    tokens = schema_tokens + sum(reading.tokens(message.content) for message in pinned) + shown.tokens
    return Context(
        (*pinned, *shown.messages()),
        tokens,
        tuple(_dropped(removal) for removal in chosen.dropped),
        schema_tokens,
        shown.inserted,
    )


def _same(a: Piece, b: Piece) -> bool:
    """Whether two pieces are of the same records: those are frozen, so that looking at which they are is enough."""
    same = a.reply is b.reply and a.call is b.call and a.answer is b.answer
    return same and len(a.advice) == len(b.advice) and all(map(is_, a.advice, b.advice))


def _dropped(removal: Removal) -> Dropped:
    return Dropped(str(removal.message.id), removal.tokens, removal.rule, removal.kind)


@dataclass
class _Group:
    """Pairs of one reply that are shown together: one assistant message, then the answers, then corrections."""

    reply: Message
    calls: tuple[ToolCall, ...]
    answers: tuple[Message, ...]
    advice: tuple[Message, ...]

    def messages(self) -> tuple[Message, ...]:
        if self.calls == self.reply.calls:
            return self.reply, *self.answers, *self.advice
        whole = self.reply.calls[0] in self.calls
        reply = replace(self.reply, calls=self.calls, content=self.reply.content if whole else "")
        return reply, *self.answers, *self.advice


class _Shown:
    """The items of a context turned into messages, one after the other, and their size."""

    def __init__(self, found: dict[str, Piece], reading: Reading) -> None:
        self.found, self.reading = found, reading
        self.groups: list[_Group | Message] = []
        self.tokens = self.inserted = 0

    def messages(self) -> list[Message]:
        """All of them, in order."""
        groups = [(group,) if isinstance(group, Message) else group.messages() for group in self.groups]
        return [message for group in groups for message in group]

    def pair(self, call: Item, answer: Item) -> None:
        """A call with its result, or with what stands for it."""
        piece = self.found[str(call.id)]
        self.tokens += call.tokens
        message, advice = self._answer(piece, answer)
        last = self.groups[-1] if self.groups else None
        calls = () if piece.call is None else (piece.call,)
        if isinstance(last, _Group) and last.reply is piece.reply:
            last.calls, last.answers, last.advice = (
                (*last.calls, *calls),
                (*last.answers, message),
                (*last.advice, *advice),
            )
        else:
            self.groups.append(_Group(piece.reply, calls, (message,), advice))

    def _answer(self, piece: Piece, item: Item) -> tuple[Message, tuple[Message, ...]]:
        """The answer as it is, cut, or a stub; corrections go with the result that they are about."""
        if item.role == "stub":
            text = self._insert(item, STUB if item.text == REMOVED else item.text)
            return _says(piece.answer, text), ()
        self.tokens += item.tokens
        if item.text == CUT and item.tokens < event("", piece, self.reading).result.tokens:
            return _says(piece.answer, self._cut(piece, item.tokens)), ()
        return piece.answer, piece.advice

    def _cut(self, piece: Piece, left: int) -> str:
        """The end of a result that fits what is left of it, marked, so that it does not look complete (M1 E1.2)."""
        whole = event("", piece, self.reading).result.tokens
        kept = max(0, len(piece.text) * left // whole - len(CUT_MARK))
        return CUT_MARK + piece.text[len(piece.text) - kept :]

    def alone(self, item: Item) -> None:
        """A note of the map's, or half a pair: as text, for no chat model takes a result without its call."""
        if item.role == "note":
            self.groups.append(Message("user", self._insert(item, item.text), 0))
            return
        piece = self.found[str(item.id).removesuffix("=")]
        if item.role == "call":
            self.tokens += item.tokens
            self.groups.append(Message("assistant", item.text, piece.reply.timestamp))
            return
        answer, advice = self._answer(piece, item)
        mark = self._insert(item, ALONE)
        failed = answer.result is not None and answer.result.status != "ok"
        said = f"[{answer.result.status}] {answer.content}" if answer.result and failed else answer.content
        text = "\n".join([said, *(message.content for message in advice)])
        self.groups.append(Message("user", mark + text, answer.timestamp))

    def _insert(self, item: Item, text: str) -> str:
        size = self.reading.inserted(item, text)
        self.tokens += size
        self.inserted += size
        return text


def _says(message: Message, text: str) -> Message:
    """The message with another content, in its result too."""
    result = None if message.result is None else replace(message.result, content=text)
    return replace(message, content=text, result=result)
