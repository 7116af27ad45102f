"""LangChain models: any chat model of LangChain behind the runtime's Model, and the reverse; imports langchain, models.

A provider's error is a ModelFailure, transient where asking again may help, and a call that LangChain could not read
makes a reply that does not parse: neither ends in a traceback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from harnesses.runtime.models import Model, ModelFailure, RawCall, Reply
from harnesses.runtime.parse import parse
from harnesses.runtime.records import AgentError
from harnesses.runtime.tools import clean

STEP = "harness_step"  # where a call's metadata says which step of the run it is
FAULT = "harness_fault"  # where an answer says why it cannot be read, if no call of it says so
EMPTY = "[empty reply]"  # stands for an assistant message without text or calls, which some providers refuse
PASSING = {408, 425, 429}  # HTTP: timed out, too early, too many; and all from 500 on
PASSING_NAMES = {
    "TimeoutError", "ConnectionError", "TimeoutException", "TransportError", "APITimeoutError", "APIConnectionError",
    "RateLimitError", "InternalServerError", "ServiceUnavailable", "ServiceUnavailableError", "ResourceExhausted",
    "DeadlineExceeded", "OverloadedError",
}  # fmt: skip


class LangChainModel:
    """A LangChain chat model as a Model of the runtime: tools bound by their schemas, messages converted."""

    def __init__(self, chat: BaseChatModel, name: str | None = None) -> None:
        self.chat, self.name = chat, name or chat._llm_type
        self._bound: tuple[list[dict[str, Any]], Runnable[Any, Any]] | None = None

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """What the provider says. ModelFailure where it gives no reply."""
        shown = [to_langchain(message) for message in messages]
        try:
            said = self._with(tools).invoke(shown, config={"metadata": {STEP: step}})
        except ModelFailure:
            raise
        except ValidationError as error:
            if error.title != AIMessage.__name__:
                raise ModelFailure(_words(error)) from error
            # The provider answered, but what it said fits no message, such as arguments that are a list.
            return Reply(fault=_misfit(error))
        except Exception as error:  # providers' libraries raise what they like
            raise ModelFailure(_words(error), transient(error)) from error
        if not isinstance(said, AIMessage):
            raise ModelFailure(f"it gave a {type(said).__name__}, no AIMessage")
        return _reply(said)

    def _with(self, tools: list[dict[str, Any]]) -> Runnable[Any, Any]:
        if not tools:
            return self.chat
        if self._bound is None or self._bound[0] is not tools:
            self._bound = (tools, self.chat.bind_tools([{"type": "function", "function": t} for t in tools]))
        return self._bound[1]


class AsChatModel(BaseChatModel):
    """A model of the runtime as a chat model of LangChain, for graphs and agents written for those.

    The step is read from the metadata of the call, where LangChainModel puts it; otherwise it is the number of
    assistant messages shown.
    """

    model: Any

    def __init__(self, model: Model, **fields: Any) -> None:
        super().__init__(**{"model": model, **fields})

    @property
    def _llm_type(self) -> str:
        return str(self.model.name)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The model with these tools."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        shown = [to_chat(message) for message in messages]
        counted = sum(message["role"] == "assistant" for message in shown)
        step = ((run_manager and run_manager.metadata) or {}).get(STEP, counted)
        schemas = [tool["function"] for tool in kwargs.get("tools", ())]
        return ChatResult(generations=[ChatGeneration(message=_said(self.model.reply(shown, schemas, step)))])


def to_langchain(message: dict[str, Any]) -> BaseMessage:
    """A message of the chat format as LangChain's. AgentError for a role that it has not."""
    role, content = message["role"], clean(message["content"])
    if role == "system":
        return SystemMessage(content)
    if role == "user":
        return HumanMessage(content)
    if role == "assistant":
        calls = [
            {
                "name": clean(c["function"]["name"]),
                "args": _arguments(c["function"]["arguments"]),
                "id": c["id"],
            }
            for c in message.get("tool_calls", ())
        ]
        return AIMessage(content if calls or content.strip() else EMPTY, tool_calls=calls)
    if role == "tool":
        return ToolMessage(content, tool_call_id=message["tool_call_id"])
    raise AgentError(f"a chat has no role {role!r}; the roles are system, user, assistant and tool")


def to_chat(message: BaseMessage) -> dict[str, Any]:
    """The reverse of `to_langchain`. AgentError for a kind of message that a chat of the runtime has not."""
    roles = {SystemMessage: "system", HumanMessage: "user", AIMessage: "assistant", ToolMessage: "tool"}
    role = next((role for kind, role in roles.items() if isinstance(message, kind)), None)
    if role is None:
        raise AgentError(f"a {type(message).__name__} has no place in a chat with tools")
    chat: dict[str, Any] = {"role": role, "content": str(message.text)}
    if isinstance(message, AIMessage) and message.tool_calls:
        chat["tool_calls"] = [
            {
                "id": c["id"],
                "type": "function",
                "function": {"name": c["name"], "arguments": json.dumps(c["args"])},
            }
            for c in message.tool_calls
        ]
    if isinstance(message, ToolMessage):
        chat["tool_call_id"] = message.tool_call_id
    return chat


def transient(error: BaseException) -> bool:
    """Whether asking again may help: by the HTTP status where an error has one, else by the names of its kinds."""
    for cause in _causes(error):
        status = _status(cause)
        if status is not None:
            return status in PASSING or status >= 500
        if PASSING_NAMES & {kind.__name__ for kind in type(cause).__mro__}:
            return True
    return False


def _arguments(text: str) -> dict[str, Any]:
    """Arguments as data, without lone surrogates, which no provider takes."""
    data = json.loads(text)
    return json.loads(clean(json.dumps(data, ensure_ascii=False))) if "\\ud" in text else data


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        seen.append(following)
        yield following
        following = following.__cause__


def _status(error: BaseException) -> int | None:
    """The HTTP status, wherever a library keeps it."""
    places = (error, getattr(error, "response", None))
    found = (getattr(place, name, None) for place in places for name in ("status_code", "code", "status"))
    return next((status for status in found if isinstance(status, int) and 100 <= status < 600), None)


def _words(error: BaseException) -> str:
    """One line."""
    line = " ".join(str(error).split())
    return f"{type(error).__name__}: {line[:300]}" if line else type(error).__name__


def _misfit(error: ValidationError) -> str:
    """One line on an answer that is no message."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}, got {str(first['input'])[:80]}"


def _reply(said: AIMessage) -> Reply:
    """An answer of LangChain as a reply: calls that it could read first, then those that it could not."""
    calls = [RawCall(str(c["name"] or ""), json.dumps(c["args"])) for c in said.tool_calls]
    calls += [RawCall(str(c["name"] or ""), str(c["args"] or "")) for c in said.invalid_tool_calls]
    usage = said.usage_metadata
    reply = Reply(str(said.text), tuple(calls), tokens=usage["total_tokens"] if usage else None)
    return replace(reply, fault=_fault(said, reply))


def _fault(said: AIMessage, reply: Reply) -> str | None:
    """Why a reply with a call that LangChain could not read does not parse; None where it could read all."""
    if not said.invalid_tool_calls:
        return said.response_metadata.get(FAULT)
    parsed = parse(reply, 1)
    return (
        parsed if isinstance(parsed, str) else f"call {len(reply.calls)}, {reply.calls[-1].name}: unreadable"
    )


def _said(reply: Reply) -> AIMessage:
    """A reply as LangChain's answer; where it does not parse, all its calls are invalid ones."""
    fields: dict[str, Any] = {}
    parsed = parse(reply, 0)
    if not isinstance(parsed, str):
        fields["tool_calls"] = [{"name": c.name, "args": dict(c.arguments), "id": c.id} for c in parsed]
    elif reply.calls:
        written = [{"name": clean(c.name), "args": clean(c.arguments), "error": parsed} for c in reply.calls]
        fields["invalid_tool_calls"] = [call | {"id": f"c{place}"} for place, call in enumerate(written)]
    elif reply.fault is not None:
        fields["response_metadata"] = {FAULT: reply.fault}
    if reply.tokens is not None:
        counts = {"input_tokens": 0, "output_tokens": reply.tokens, "total_tokens": reply.tokens}
        fields["usage_metadata"] = counts
    return AIMessage(clean(reply.text), **fields)
