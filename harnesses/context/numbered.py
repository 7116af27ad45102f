"""NumberedMap: a context map with its memories and contexts numbered as they are met; imports context_map, message."""

from __future__ import annotations

from fractions import Fraction

from harnesses.context.context_map import ContextMap, Memory, branches
from harnesses.context.message import Context, Sizes

Following = tuple[tuple[int, Fraction | None], ...]
"""Memories that can follow and their probabilities, None for a sure one."""


class NumberedMap:
    """`phi` over pairs of names, each step folded once. Memory 0 is x0, context 0 is c_0 = lam(x0).

    `memories[x]` and `shown[x]`, the number of its context; `contexts[c]` and `first[c]`, the first memory to show it.
    """

    def __init__(self, phi: ContextMap, sizes: Sizes) -> None:
        self._phi, self._sizes = phi, sizes
        self.memories: list[Memory] = []
        self.shown: list[int] = []
        self.contexts: list[Context] = []
        self.first: list[int] = []
        self._number: dict[Memory, int] = {}
        self._context: dict[Context, int] = {}
        self._steps: dict[tuple[int, str, str], Following] = {}
        self._remember(phi.start())

    def step(self, memory: int, action: str, observation: str) -> Following:
        """What can follow a memory after one more pair."""
        key = (memory, action, observation)
        found = self._steps.get(key)
        if found is None:
            drawn = branches(self._phi, self.memories[memory], self._sizes.event(action, observation))
            found = tuple((self._remember(y), None if q == 1 else q) for y, q in drawn if q)
            self._steps[key] = found
        return found

    def _remember(self, memory: Memory) -> int:
        number = self._number.get(memory)
        if number is None:
            number = self._number[memory] = len(self.memories)
            context = self._phi.show(memory)
            shown = self._context.setdefault(context, len(self.contexts))
            if shown == len(self.contexts):
                self.contexts.append(context)
                self.first.append(number)
            self.memories.append(memory)
            self.shown.append(shown)
        return number
