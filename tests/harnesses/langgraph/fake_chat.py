"""Chat models by no provider, for `--model`: they repair the calc task, or fail as providers do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from harnesses.runtime.calc_task import COMMAND, RIGHT


class RateLimitError(Exception):
    """As a provider's library raises it, with the HTTP status."""

    status_code = 429


class FakeChat(BaseChatModel):
    """Answers by a list, the last for ever; one that is an exception is raised. `asked` holds what it was shown."""

    answers: list[Any]
    asked: list[Any] = []
    index: int = 0

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.asked.append((messages, kwargs.get("tools")))
        answer = self.answers[min(self.index, len(self.answers) - 1)]
        self.index += 1
        if isinstance(answer, BaseException):
            raise answer
        message = answer() if callable(answer) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])


def asks(name: str, **arguments: Any) -> AIMessage:
    """An answer that makes one call."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "call_1"}])


def misspelt() -> AIMessage:
    """An answer with a call whose arguments are not JSON."""
    bad = {"name": "read_file", "args": '{"path": ', "id": "x", "error": "Expecting value"}
    return AIMessage("let me see", invalid_tool_calls=[bad])


def listed() -> AIMessage:
    """What langchain-openai 1.7 does with arguments that are JSON, but a list: the message cannot be made."""
    return AIMessage("", tool_calls=[{"name": "read_file", "args": json.loads("[1]"), "id": "x"}])


def repairer() -> FakeChat:
    """Repairs calc.py after a rate limit and two answers that cannot be read."""
    return FakeChat(
        answers=[
            RateLimitError("slow down"),
            asks("read_file", path="calc.py"),
            misspelt(),
            listed,
            asks("write_file", path="calc.py", content=RIGHT),
            TimeoutError("no answer for 120 s"),
            asks("run_tests", command=COMMAND),
            AIMessage("Done.", usage_metadata={"input_tokens": 400, "output_tokens": 5, "total_tokens": 405}),
        ]
    )


class Stateless(FakeChat):
    """Repairs calc.py, looking only at how many answers of its own it is shown."""

    answers: list[Any] = []

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        given = [
            asks("read_file", path="calc.py"),
            asks("write_file", path="calc.py", content=RIGHT),
            asks("run_tests", command=COMMAND),
            AIMessage("Done."),
        ]
        said = given[sum(isinstance(message, AIMessage) for message in messages)]
        return ChatResult(generations=[ChatGeneration(message=said)])


class Refusing(FakeChat):
    """Has no valid key."""

    answers: list[Any] = [type("AuthenticationError", (Exception,), {"status_code": 401})("no such key")]


broken = 3
