"""SmolLM2's agent over tiny models: whatever the numbers are, a reply parses and asks for what a tool takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harnesses.desk.decider import DeciderError
from harnesses.desk.documents import documents
from harnesses.desk.driver import Desk
from harnesses.desk.lm_agent import ConstrainedModel, addresses
from harnesses.desk.lm_model import LanguageModel
from harnesses.desk.lm_writer import Writer
from harnesses.desk.passages import Index
from harnesses.desk.prompt import system_message
from harnesses.desk.registrations import registry
from harnesses.desk.toolbox import Toolbox
from harnesses.runtime.models import Model, ModelFailure
from harnesses.runtime.parse import parse
from harnesses.runtime.records import ToolResult
from harnesses.runtime.retry import Retry

Tiny = Callable[..., LanguageModel]
SHORT = [{"role": "user", "content": "mail ana@example.org, not bo@example.com."}]


def toolbox() -> Toolbox:
    index = Index.of((document.name, document.text) for document in documents(()))
    return Toolbox(index, registry, Retry(limit=0))


def tool(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": "A tool.", "parameters": schema}


@pytest.mark.parametrize("temperature", [0.0, 100.0])
def test_every_reply_parses_and_every_call_is_valid(temperature: float, tiny: Tiny) -> None:
    tools = toolbox()
    bound, made = tools.bound({"email": "ana@example.org"}), []
    for seed in range(16 if temperature else 3):
        model = ConstrainedModel(tiny(seed), seed, temperature)
        reply = model.reply(SHORT, tools.schemas, seed)
        calls = parse(reply, 1)
        assert not isinstance(calls, str)
        assert calls or reply.text.strip()
        for call in calls:
            assert not isinstance(bound.dispatcher.check(call), ToolResult)
            made.append(call)
        assert reply.tokens is not None and reply.tokens > 0
    if temperature:  # what is likeliest to a tiny model is mostly the shortest name, answer
        assert len({call.name for call in made}) == 4
    spelled = {
        str(call.arguments[name]) for call in made for name in ("to", "email") if name in call.arguments
    }
    assert spelled <= {"ana@example.org", "bo@example.com"}
    expressions = [call.arguments["expression"] for call in made if call.name == "calculator"]
    assert all(set(text) <= set("0123456789+-*/(). ") for text in expressions)


def test_arguments_follow_the_schema(tiny: Tiny) -> None:
    odd = tool("o", kind={"enum": [3, "x y", None]}, sure={"type": "boolean"}, note={"type": "string"})
    deep = tool("deep", inner={"type": "object"})
    seen = set()
    for seed in range(12):
        reply = ConstrainedModel(tiny(0), seed, 100.0).reply(SHORT, [deep, odd], 0)
        for raw in reply.calls:
            got = json.loads(raw.arguments)
            assert raw.name == "o" and list(got) == ["kind", "sure", "note"]
            assert got["kind"] in (3, "x y", None) and isinstance(got["sure"], bool) and got["note"].strip()
            seen.add((got["kind"], got["sure"]))
    assert len(seen) >= 3
    assert ConstrainedModel(tiny(0)).reply(SHORT, [deep], 0).text.strip()


def test_the_likeliest_text_is_chosen(tiny: Tiny, plain: Callable[..., np.ndarray]) -> None:
    texts, prompt = ["yes", "no", " refund", "yes no"], "The refund is due"
    chosen = set()
    for seed in range(5):
        language = tiny(seed)
        tokens, loaded = language.tokenizer, language.loaded
        row, scores = tokens.encode(prompt), []
        for text in texts:
            end = tokens.encode(text)
            logits = plain(loaded.config, loaded.weights, row + end)[len(row) - 1 : -1]
            logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            scores.append(sum(logs[i, token] for i, token in enumerate(end)))
        writer = Writer(language, row)
        found = writer.choose(texts)
        assert found == int(np.argmax(scores))
        chosen.add(found)
        # And again after more was written: the past holds all of it.
        row += [*tokens.encode(texts[found]), *tokens.encode(" We are")]
        writer.write(" We are")
        assert writer.written == len(row) - len(tokens.encode(prompt))
        wanted = plain(loaded.config, loaded.weights, row)[-1]
        assert writer.choose(["a", "b"]) == int(wanted[tokens.numbers["b"]] > wanted[tokens.numbers["a"]])
        row.append(
            int(tokens.numbers["b" if wanted[tokens.numbers["b"]] > wanted[tokens.numbers["a"]] else "a"])
        )
        wanted = plain(loaded.config, loaded.weights, row)[-1]
        best = next(int(n) for n in np.argsort(-wanted) if _plain(tokens.bytes_of(int(n))))
        assert writer.string(1) == tokens.decode([best])
    assert len(chosen) > 1


def _plain(token: bytes) -> bool:
    """Printing ASCII or a letter beyond, not blank, no quote, no backslash."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return False
    return bool(text.strip()) and text.isprintable() and not set(text) & {'"', "\\"}


def test_a_string_ends_at_its_quote_and_is_never_blank(tiny: Tiny) -> None:
    language = tiny(0)
    quote, space, letter = (language.tokenizer.encode(text)[0] for text in ('"', " ", "x"))

    def wish(*numbers: int) -> Callable[[int], np.ndarray]:
        wishes = np.zeros(language.vocabulary)
        for place, number in enumerate(numbers):
            wishes[number] = 1e6 * (9 - place)
        return lambda n: wishes[:n]

    row = language.tokenizer.encode("We are")
    assert Writer(language, row, noise=wish(quote, space, letter)).string(5) == "x"
    assert Writer(language, row, noise=wish(letter, quote)).string(5) == "xxxxx"
    assert set(Writer(language, row, noise=wish(letter)).string(5, "12")) <= set("12")


def test_a_draw_repeats_with_its_seed_and_step_and_with_no_other(tiny: Tiny) -> None:
    language, tools = tiny(2), toolbox().schemas

    def reply(seed: int, step: int = 0, messages: list[dict[str, Any]] = SHORT) -> Any:
        return ConstrainedModel(language, seed, 3.0).reply(messages, tools, step)

    assert reply(1) == reply(1)
    assert len({str(reply(seed)) for seed in (1, 2)}) == 2
    assert reply(1, 0) != reply(1, 1)
    cold = {str(ConstrainedModel(language, seed).reply(SHORT, tools, seed)) for seed in range(2)}
    assert len(cold) == 1


def test_the_real_graph_runs_to_an_end_on_it(tiny: Tiny, fixed: Any) -> None:
    case = {
        "today": "2026-03-02",
        "event": {"id": "E1"},
        "registration": registry("ana@example.org"),
        "request": "Please email me a confirmation.",
        "email": "ana@example.org",
    }
    model: Model = ConstrainedModel(tiny(0), 1, 100.0)
    desk = Desk.open(model, fixed(p_allow=0.99), toolbox())
    standing = desk.start("t", case, {"route": "0.75", "esc": "0.375", "act": "0.969", "verify": "0.5"}, 2)
    says = [line["says"] for line in standing.state["trace"] if line["node"] in ("agent", "tools")]
    # What is asked for here depends on rounding; that it is a call, and that the graph took it, does not.
    assert says[0].startswith("calls ") and "Fix" not in says[1] and len(says) >= 3
    assert standing.next is None and standing.kind in ("answer", "failed", "handoff")


def test_it_says_what_it_is_and_refuses_what_it_cannot_read(tiny: Tiny) -> None:
    assert ConstrainedModel(tiny(0)).name == "tiny.gguf, held to valid calls"
    with pytest.raises(ModelFailure, match="more than tiny.gguf reads: 50"):
        ConstrainedModel(tiny(0, context=50)).reply(SHORT, [], 0)
    with pytest.raises(DeciderError, match="the temperature -1 is none"):
        ConstrainedModel(tiny(0), temperature=-1)


def test_addresses_are_those_of_all_messages_each_once() -> None:
    case = {"email": "ana@example.org", "request": "Write to ANA.b-c+d@mail.example.co.uk."}
    call = {"id": "c1", "function": {"name": "send_email", "arguments": '{"to": "x@y.zz"}'}}
    messages = [system_message(case), {"role": "assistant", "content": "", "tool_calls": [call]}, *SHORT]
    assert addresses(messages) == [
        "ana@example.org",
        "ANA.b-c+d@mail.example.co.uk",
        "x@y.zz",
        "bo@example.com",
    ]
