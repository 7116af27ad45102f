"""OldestFirst: tool results go, oldest first, until the context fits a budget; imports message.

Source: M1 §1.2.4 (the minimal policy), E1.2. Differs from the source: a removed result leaves a stub, so that
every call keeps an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from harnesses.context.context_map import Memory
from harnesses.context.message import STUB_TOKENS, Context, Event, Message, Removal, stub
from pomdp.model import ModelError

CUT = "~cut"  # the text of a result of which a part was cut


@dataclass(frozen=True)
class OldestFirst:
    """While the context has more than `budget` tokens, stubs included, the oldest tool result is removed.

    Every call is kept, and so are the newest `keep` messages, and results no larger than the stub that would
    take their place. With `whole=False` only as much of the oldest result is cut as needed, and its text becomes
    the marker `~cut`: what is left of an observation cannot be read on the formal side; a running harness finds
    the rest of the text by the message's id. What cannot be removed may exceed the budget. Memory: the messages
    shown.
    """

    budget: int
    whole: bool = True
    keep: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that are no counts."""
        for value, what in ((self.budget, "a budget in tokens"), (self.keep, "a number of messages to keep")):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ModelError(
                    f"oldest_first needs {what} from 0, such as oldest_first:3000; got {value!r}"
                )

    @property
    def name(self) -> str:
        """Canonical text."""
        keep = f":{self.keep}" if self.keep else ""
        return f"oldest_first:{self.budget}{'' if self.whole else ':partial'}{keep}"

    @property
    def bounded(self) -> bool:
        """Never: calls accumulate."""
        return False

    def start(self) -> Memory:
        """No message."""
        return ()

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """Trim what is over the budget; the same as trimming the whole history at once."""
        messages: list[Message] = [*memory, *event]
        over = sum(message.tokens for message in messages) - self.budget
        gone: list[Removal] = []
        for i in range(len(messages) - self.keep):
            if over <= 0:
                break
            message = messages[i]
            if message.role != "result" or message.tokens <= STUB_TOKENS:
                continue
            left = message.tokens - over
            if self.whole or left <= STUB_TOKENS:
                messages[i], left = stub(message), STUB_TOKENS
                gone.append(Removal(message, message.tokens, self.name, "truncation"))
            else:
                messages[i] = Message("result", CUT, left, message.id)
                gone.append(Removal(message, over, self.name, "truncation"))
            over -= message.tokens - left
        return tuple(messages), tuple(gone)

    def show(self, memory: Memory) -> Context:
        """What was not trimmed, in order."""
        return Context(memory)
