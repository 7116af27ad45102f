"""LM agent: SmolLM2 at the agent node, held to replies that parse; imports lm_model, lm_writer and runtime.models.

It writes one JSON object: a call of a tool that it was shown with every argument that it needs, an answer among them.
The tool is chosen by log-probability; an address is one of those that it has read, an expression has the letters of
one, other strings are written freely. The model is weak by design: what it asks for is well formed, seldom sensible.
Source: M14 §4 (the agent node); Willard and Louf (2023) for decoding within a form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from harnesses.desk.decider import DeciderError
from harnesses.desk.lm_model import LanguageModel, smollm2_model
from harnesses.desk.lm_writer import Noise, Writer, greedy
from harnesses.runtime.models import ModelFailure, RawCall, Reply
from pomdp.rng import words

ARGUMENT, ANSWER = 24, 64
"""Tokens of a free argument and of a final answer, at most."""
STREAM = 2**16
"""The stream of this model's draws, apart from those of the simulators and of the desk's data."""
LETTERS = {"expression": "0123456789+-*/(). "}
"""Arguments that are written with these letters alone."""
ADDRESSES = ("email", "to")
"""Arguments that are one of the addresses in the messages."""

_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_ANSWER = "answer(text): End with this answer to the participant, in words."
_FORM = 'Reply with one JSON object: {"name": TOOL, "arguments": {...}}.'


@dataclass(frozen=True, eq=False)
class ConstrainedModel:
    """A language model as a Model of the runtime. At temperature 0 it takes the most probable; `seed` is for draws."""

    language: LanguageModel
    seed: int = 0
    temperature: float = 0.0

    def __post_init__(self) -> None:
        words(self.seed, STREAM, 0, 0)
        if not 0 <= self.temperature < float("inf"):
            raise DeciderError(f"the temperature {self.temperature} is none; give 0, or a number such as 0.7")

    @property
    def name(self) -> str:
        """The model, as it stands in traces."""
        return f"{self.language.name}, held to valid calls"

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """One call or a final answer. Raises ModelFailure for messages beyond the model's context."""
        usable = [tool for tool in tools if _writable(tool["parameters"])]
        prompt = self._prompt(messages, usable)
        names = ["answer", *(tool["name"] for tool in usable)]
        try:
            writer = Writer(self.language, prompt, noise=self._noise(messages, step))
            writer.write('{"name": "')
            chosen = writer.choose([f'{name}"' for name in names])
            writer.write(', "arguments": {')
            if chosen == 0:
                writer.write('"text": "')
                return Reply(text=writer.string(ANSWER).strip(), tokens=len(prompt) + writer.written)
            tool = usable[chosen - 1]
            arguments = _arguments(writer, tool["parameters"], addresses(messages))
        except DeciderError as error:
            raise ModelFailure(str(error)) from None
        call = RawCall(tool["name"], json.dumps(arguments, ensure_ascii=False))
        return Reply(calls=(call,), tokens=len(prompt) + writer.written)

    def _prompt(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """The chat up to the reply. Tools are told of in the system's turn, or in one of their own without any."""
        told = "\n".join(["Tools:", *map(_described, tools), _ANSWER, "", _FORM])
        turns = [(str(message["role"]), _said(message)) for message in messages]
        if turns and turns[0][0] == "system":
            turns[0] = ("system", f"{turns[0][1]}\n\n{told}")
        else:
            turns.insert(0, ("system", told))
        tokens = self.language.tokenizer
        return [n for role, text in turns for n in tokens.turn(role, text)] + tokens.opening("assistant")

    def _noise(self, messages: Sequence[Mapping[str, Any]], step: int) -> Noise:
        """Noise that is a function of the seed, what was shown, the step, and how much was drawn before."""
        if self.temperature == 0:
            return greedy
        shown, drawn = crc32(json.dumps(messages, sort_keys=True).encode()), 0

        def noise(n: int) -> np.ndarray:
            nonlocal drawn
            counters = np.arange(drawn, drawn + n)
            drawn += n
            uniform = (words(self.seed, STREAM + step, shown, counters)[0] + 0.5) / 2.0**32
            return -np.log(-np.log(uniform)) * self.temperature

        return noise


def smollm2_agent(seed: int = 0, temperature: float = 0.0) -> ConstrainedModel:
    """SmolLM2 for the agent node. Raises DeciderError with the remedy where it is not installed."""
    return ConstrainedModel(smollm2_model(), seed, temperature)


def addresses(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The email addresses in the messages, each once, in order: those of poisoned documents among them."""
    return list(dict.fromkeys(found for message in messages for found in _ADDRESS.findall(_said(message))))


def _arguments(writer: Writer, schema: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The arguments that a tool needs, in the order of its schema."""
    found: dict[str, Any] = {}
    for name in _needed(schema):
        writer.write(f'{", " if found else ""}"{name}": ')
        options = _options(schema["properties"][name], name, known)
        if options:
            found[name] = options[writer.choose([json.dumps(o, ensure_ascii=False) for o in options])]
        else:
            writer.write('"')
            found[name] = writer.string(ARGUMENT, LETTERS.get(name)).strip()
            writer.write('"')
    return found


def _options(schema: Mapping[str, Any], name: str, known: Sequence[str]) -> list[Any]:
    """What an argument is chosen from; nothing where it is written freely."""
    if "enum" in schema:
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [True, False]
    return list(known) if name in ADDRESSES else []


def _needed(schema: Mapping[str, Any]) -> list[str]:
    return [name for name in schema.get("properties", {}) if name in schema.get("required", ())]


def _writable(schema: Mapping[str, Any]) -> bool:
    """Whether every needed argument is a string, a truth value or one of a list; other tools are not offered."""
    kinds = [schema["properties"][name] for name in _needed(schema)]
    return all("enum" in kind or kind.get("type") in ("string", "boolean") for kind in kinds)


def _described(tool: Mapping[str, Any]) -> str:
    return f"{tool['name']}({', '.join(_needed(tool['parameters']))}): {tool['description']}"


def _said(message: Mapping[str, Any]) -> str:
    """A message as text: its words, and its calls in the form in which they are written."""
    calls = [
        f'{{"name": "{call["function"]["name"]}", "arguments": {call["function"]["arguments"]}}}'
        for call in message.get("tool_calls", ())
    ]
    return "\n".join(part for part in (str(message.get("content") or ""), *calls) if part)
