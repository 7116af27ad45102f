"""Any chat model of LangChain behind the runtime's Model: calls, faults, usage and failures, and by name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_chat import FakeChat, RateLimitError, listed, misspelt, repairer
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, ToolMessage
from pydantic import ValidationError

from experiments.__main__ import main
from harnesses.langchain_model import EMPTY, AsChatModel, LangChainModel, to_chat, to_langchain, transient
from harnesses.providers import model_named
from harnesses.runtime import loop
from harnesses.runtime.format import chat
from harnesses.runtime.models import ModelFailure, RawCall, Reply, ScriptedModel, say
from harnesses.runtime.parse import as_written, parse
from harnesses.runtime.records import AgentError, Message, ToolCall, ToolResult
from harnesses.runtime.scenarios import CALC, SYSTEM, VirtualFiles, harness_of
from harnesses.runtime.trace import MemoryTrace, replay

HERE = "fake_chat"
SCHEMA = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}


def reply_to(answer: Any) -> Reply:
    return LangChainModel(FakeChat(answers=[answer])).reply([{"role": "user", "content": "Hi"}], [], 0)


def test_calls_text_and_usage_are_read() -> None:
    usage: Any = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
    said, thought = {"type": "text", "text": "I "}, {"type": "reasoning", "reasoning": "x"}
    blocks: Any = [said, thought, {"type": "text", "text": "see"}]
    call: Any = {"name": "look", "args": {"n": 1}, "id": "a"}
    answer = AIMessage(blocks, tool_calls=[call], usage_metadata=usage)
    assert reply_to(answer) == Reply("I see", (RawCall("look", '{"n": 1}'),), tokens=11)
    assert reply_to(AIMessage("Done.")) == Reply("Done.")


def test_a_call_that_langchain_could_not_read_does_not_parse() -> None:
    found = reply_to(misspelt())
    assert "call 1, read_file: the arguments of read_file is not JSON" in str(parse(found, 1))
    assert as_written(found) == 'let me see\nread_file {"path": '
    assert "tool_calls.0.args: input should be a valid dictionary, got [1]" in str(parse(reply_to(listed), 1))
    # Even where the runtime would have read it: what LangChain refused is not made.
    blank: Any = {"name": "look", "args": "", "id": "x", "error": "empty"}
    good: Any = {"name": "look", "args": {}, "id": "y"}
    assert isinstance(parse(reply_to(AIMessage("", tool_calls=[good], invalid_tool_calls=[blank])), 1), str)


def test_tools_are_bound_by_their_schemas_and_messages_converted() -> None:
    model = FakeChat(answers=[AIMessage("ok")])
    history = [
        Message("system", "S", 1),
        Message("user", "U", 2),
        Message(
            "assistant", "both", 3, (ToolCall("c1", "look", {"a": [1, "x"]}), ToolCall("c2", "look", {}))
        ),
        Message("tool", "no", 4, result=ToolResult("c1", "denied", "no", 0.0)),
        Message("tool", "yes", 5, result=ToolResult("c2", "ok", "yes", 0.0)),
        Message("assistant", " ", 6, about="m2"),
        Message("user", "[harness] what?", 7, about="m2"),
    ]
    LangChainModel(model).reply(chat(history), [SCHEMA], 0)
    shown, tools = model.asked[-1]
    assert tools == [{"type": "function", "function": SCHEMA}]
    assert [m.type for m in shown] == ["system", "human", "ai", "tool", "tool", "ai", "human"]
    assert [(c["name"], c["args"], c["id"]) for c in shown[2].tool_calls] == [
        ("look", {"a": [1, "x"]}, "c1"),
        ("look", {}, "c2"),
    ]
    assert shown[3].content == "[denied] no" and shown[3].tool_call_id == "c1"
    assert shown[5].content == EMPTY  # some providers refuse an empty message
    back = [to_chat(message) for message in shown]
    assert [*back[:5], back[6]] == [message for i, message in enumerate(chat(history)) if i != 5]


def test_lone_surrogates_do_not_reach_a_provider() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "x\ud800", "arguments": '{"a": "\\ud800"}'}}
    made = to_langchain({"role": "assistant", "content": "\ud800", "tool_calls": [call]})
    assert made.model_dump_json()
    assert isinstance(made, AIMessage) and made.tool_calls[0]["args"] == {"a": "?"}


def test_what_a_chat_has_not_is_told() -> None:
    with pytest.raises(AgentError, match="no role 'critic'"):
        to_langchain({"role": "critic", "content": ""})
    with pytest.raises(AgentError, match="ChatMessage has no place"):
        to_chat(ChatMessage("x", role="critic"))


def failure(answer: Any) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        reply_to(answer)
    return caught.value


def http(status: int, name: str = "HTTPStatusError") -> Exception:
    error = type(name, (Exception,), {})("x")
    error.response = type("Response", (), {"status_code": status})()  # type: ignore[attr-defined]
    return error


def named(*names: str) -> Exception:
    kind: type[Exception] = Exception
    for name in names:
        kind = type(name, (kind,), {})
    return kind("x")


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (RateLimitError("slow down"), True),
        *(
            (http(status), status in (408, 425, 429, 500, 502, 503, 529))
            for status in (400, 401, 403, 404, 408)
        ),
        *((http(status), True) for status in (425, 429, 500, 502, 503, 529)),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (named("TransportError", "ConnectError"), True),  # httpx
        (named("APIConnectionError", "APITimeoutError"), True),  # openai, anthropic
        (named("BadRequestError"), False),
        (http(400, "InternalServerError"), False),  # the status says more than the name
        (ValueError("a bug of the library"), False),
        (NotImplementedError(), False),
    ],
    ids=str,
)
def test_failures_that_may_pass_are_told_from_others(error: Exception, passing: bool) -> None:
    assert transient(error) == passing
    told = failure(error)
    assert told.transient == passing and "\n" not in str(told) and type(error).__name__ in str(told)


def test_the_cause_of_a_failure_counts() -> None:
    outer = ValueError("wrapped")
    outer.__cause__ = TimeoutError()
    assert transient(outer)
    outer.__cause__ = outer
    assert not transient(outer)


def test_other_validation_errors_and_answers_of_another_kind_are_failures() -> None:
    with pytest.raises(ValidationError) as caught:
        AIMessageChunk.model_validate({"content": 1})
    assert not failure(caught.value).transient
    assert reply_to(AIMessageChunk("x")) == say("x")
    assert "no AIMessage" in str(failure(ToolMessage("x", tool_call_id="c1")))


def test_rate_limits_and_timeouts_are_retried_and_the_task_done() -> None:
    trace = MemoryTrace()
    harness = harness_of(VirtualFiles(), LangChainModel(repairer(), "fake"), trace=trace, clock=None)
    harness.dispatcher.retry = type(harness.dispatcher.retry)(first=0.0)
    run = loop.run(harness, CALC["fix"].request, SYSTEM)
    assert run.state.termination_reason == "completed" and run.history[-1].content == "Done."
    failed = [record for record in replay(trace.lines).records if record["kind"] == "model_failure"]
    assert [record["detail"] for record in failed] == [
        "RateLimitError: slow down",
        "TimeoutError: no answer for 120 s",
    ]
    assert sum(message.role == "user" and message.about is not None for message in run.history) == 2
    counted = [record["tokens"] for record in replay(trace.lines).records if record["kind"] == "reply"]
    assert counted[-1] == 405


def test_a_provider_that_stays_down_ends_the_run_with_a_reason() -> None:
    harness = harness_of(
        VirtualFiles(), LangChainModel(FakeChat(answers=[RateLimitError("no")]), "fake"), clock=None
    )
    harness.dispatcher.retry = type(harness.dispatcher.retry)(first=0.0)
    run = loop.run(harness, "x", SYSTEM)
    assert (run.state.termination_reason, run.state.detail) == (
        "error",
        "the model fake failed: RateLimitError: no",
    )


RAW = st.builds(
    RawCall,
    st.sampled_from(["look", "", "x\ud800"]),
    st.sampled_from(["{}", '{"a": [1, 2.5, null]}', "{", "[]", "", '{"a": 1, "a": 2}', "\ud800"]),
)
REPLIES = st.builds(
    Reply,
    st.sampled_from(["", "text", "é"]),
    st.lists(RAW, max_size=3).map(tuple),
    st.one_of(st.none(), st.integers(0, 99)),
    fault=st.one_of(st.none(), st.just("no answer at all")),
)


@given(REPLIES)
def test_a_reply_of_the_runtime_through_langchain_parses_alike(reply: Reply) -> None:
    """Up to lone surrogates, which the history has not either."""
    found = LangChainModel(AsChatModel(ScriptedModel([reply]))).reply(
        [{"role": "user", "content": ""}], [], 0
    )
    expected = parse(reply, 1)
    if isinstance(expected, str) or not any("\ud800" in raw.name for raw in reply.calls):
        assert isinstance(parse(found, 1), str) == isinstance(expected, str)
    if not isinstance(expected, str) and not any("\ud800" in raw.name for raw in reply.calls):
        assert parse(found, 1) == expected
    if isinstance(expected, str):
        assert as_written(found) == as_written(reply).encode("utf-8", "replace").decode()
    assert found.tokens == reply.tokens


def test_the_step_and_the_schemas_reach_a_policy() -> None:
    seen = []

    class Policy:
        name = "policy"

        def reply(self, messages: Any, tools: Any, step: int) -> Reply:
            seen.append((messages, tools, step))
            return say("x")

    messages = chat([Message("user", "U", 1), Message("assistant", "A", 2), Message("user", "V", 3)])
    LangChainModel(AsChatModel(Policy())).reply(messages, [SCHEMA], 7)
    AsChatModel(Policy()).invoke([to_langchain(message) for message in messages])
    assert seen == [(messages, [SCHEMA], 7), (messages, [], 1)]


def test_a_failing_policy_stays_a_model_failure() -> None:
    class Down:
        name = "down"

        def reply(self, messages: Any, tools: Any, step: int) -> Reply:
            raise ModelFailure("busy", transient=True)

    with pytest.raises(ModelFailure, match="^busy$") as caught:
        LangChainModel(AsChatModel(Down())).reply([], [], 0)
    assert caught.value.transient


# By name, as a user gives it.


def agent(capsys: Any, *arguments: str) -> Any:
    assert main(["agent", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_chat_model_by_its_class_repairs_calc_with_real_pytest(capsys: Any, tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    name = f"{HERE}:Stateless"
    found = agent(
        capsys, "run", "calc", "--model", name, "--folder", str(tmp_path / "calc"), "--trace", str(trace)
    )
    assert (found["model"], found["reason"], found["results"]) == (name, "completed", {"ok": 3})
    assert "return a + b" in (tmp_path / "calc" / "calc.py").read_text()
    again = agent(capsys, "replay", str(trace))
    assert again.pop("contexts_recomputed") == 4 and again == found
    lines = trace.read_text().splitlines(keepends=True)
    for kept in (6, len(lines) // 2, len(lines) - 2):
        trace.write_text("".join(lines[:kept]))
        resumed = agent(capsys, "resume", str(trace))
        assert (resumed["reason"], resumed["results"]) == ("completed", {"ok": 3})


def test_functions_that_make_models_and_files_in_memory(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    found = agent(capsys, "run", "calc", "--virtual", "--model", f"{HERE}:repairer")
    assert found["reason"] == "completed" and "step 1: attempt 1 failed, again after 1 s" in found["fired"]
    refused = agent(capsys, "run", "calc", "--virtual", "--model", f"{HERE}:Refusing")
    assert refused["detail"] == f"the model {HERE}:Refusing failed: AuthenticationError: no such key"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model", "gpt-4o"], "write openai:gpt-4o-mini or package.module:Class"),
        (
            ["--model", "opnai:gpt-4o"],
            "no model 'opnai:gpt-4o' (No module named 'opnai'): the providers are openai,",
        ),
        (["--model", f"{HERE}:missing"], "has no attribute 'missing'"),
        (["--model", f"{HERE}:broken"], "cannot be made without arguments: 'int' object is not callable"),
        (["--model", "json:JSONDecoder"], "neither a chat model of LangChain nor a Model"),
        (["--model", f"{HERE}:FakeChat"], "cannot be made without arguments: 1 validation error"),
        (["--model", f"{HERE}:repairer", "--base-url", "http://x/v1"], "makes its model itself"),
        (["--model", f"{HERE}:repairer", "--script", "fix"], "leave --script out"),
        (["--base-url", "http://x/v1"], "--model openai:NAME"),
    ],
)
def test_models_that_are_not_there_are_told_in_one_line(
    capsys: Any, tmp_path: Path, arguments: list[str], says: str
) -> None:
    trace = tmp_path / "run.jsonl"
    assert main(["agent", "run", "calc", "--trace", str(trace), *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and says in err and not trace.exists()


class FakePackage:
    """Stands for a provider's package."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def ChatOpenAI(self, **settings: Any) -> Any:
        self.made.append(settings)
        return FakeChat(answers=[AIMessage("x")])


def test_a_provider_needs_its_package_and_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    with pytest.raises(AgentError, match="pip install langchain-openai"):
        model_named("openai:gpt-4o-mini")
    package = FakePackage()
    monkeypatch.setitem(sys.modules, "langchain_openai", package)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AgentError, match="set OPENAI_API_KEY, or name a local server with --base-url"):
        model_named("openai:gpt-4o-mini")
    assert model_named("openai:qwen:7b", "http://localhost:8000/v1").name == "openai:qwen:7b"
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model_named("openai:gpt-4o-mini")
    assert [sorted(settings.items()) for settings in package.made] == [
        [
            ("api_key", "none"),
            ("base_url", "http://localhost:8000/v1"),
            ("max_retries", 0),
            ("model", "qwen:7b"),
            ("timeout", 120),
        ],
        [("max_retries", 0), ("model", "gpt-4o-mini"), ("timeout", 120)],
    ]
    for wrong in ("localhost:8000", "ftp://x/", "http://"):
        with pytest.raises(AgentError, match="write http://localhost:8000/v1"):
            model_named("openai:x", wrong)
    with pytest.raises(AgentError, match="would stand in the trace"):
        model_named("openai:x", "http://me:secret@localhost/v1")


@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
def test_the_real_packages_take_these_settings(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(f"langchain_{provider}")
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    model = model_named(f"{provider}:some-model", "http://127.0.0.1:9/v1")  # a port on which nothing listens
    with pytest.raises(ModelFailure) as caught:
        model.reply([{"role": "user", "content": "Hi"}], [SCHEMA], 0)
    assert caught.value.transient, caught.value


def test_models_of_this_folder_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_model_of_this_folder.py").write_text(
        "from harnesses.runtime.models import ScriptedModel, say\nmine = ScriptedModel([say('x')])\n"
    )
    monkeypatch.chdir(tmp_path)
    assert model_named("my_model_of_this_folder:mine").reply([], [], 0) == say("x")
