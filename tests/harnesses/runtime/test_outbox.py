"""A message is sent once a key, whoever asks and however often."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harnesses.runtime.clock import VirtualClock
from harnesses.runtime.outbox import Outbox
from harnesses.runtime.records import AgentError, ToolCall
from harnesses.runtime.tools import Dispatcher, Tool


def test_a_second_call_with_the_same_key_sends_nothing_and_says_the_same(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox.sqlite")
    assert outbox.send("a@b", "hello", "1") == outbox.send("a@b", "hello", "1") == "message 1 sent to a@b"
    assert Outbox(tmp_path / "outbox.sqlite").send("a@b", "hello", "2") == "message 2 sent to a@b"
    assert outbox.sent() == [("a@b", "hello")] * 2
    with pytest.raises(ValueError, match="message 1 was sent with this key and is another one; stop"):
        outbox.send("a@b", "goodbye", "1")
    assert len(outbox.sent()) == 2


def test_many_senders_at_once_send_each_message_once(tmp_path: Path) -> None:
    def work() -> None:
        for number in range(10):
            Outbox(tmp_path / "outbox.sqlite").send("a@b", str(number), str(number))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(text for _, text in Outbox(tmp_path / "outbox.sqlite").sent()) == [
        str(n) for n in range(10)
    ]


def test_the_key_is_the_harness_s_own(tmp_path: Path) -> None:
    """The model neither sees it nor can give it; calls and runs have different ones."""
    outbox = Outbox(tmp_path / "outbox.sqlite")
    tool = Tool.of(outbox.send, description="Send a message.", keyed=True, inline=True)
    assert list(tool.schema["parameters"]["properties"]) == ["receiver", "text"]
    dispatcher = Dispatcher([tool], {"send": ()}, VirtualClock())
    words = {"receiver": "a@b", "text": "hello"}
    given = dispatcher.dispatch(ToolCall("c1", "send", {**words, "key": "mine"}), run="r")
    assert given.status == "error" and "unexpected argument: key" in given.content
    for run, call_id in (("r", "c1"), ("r", "c1"), ("r", "c2"), ("other", "c1")):
        assert dispatcher.dispatch(ToolCall(call_id, "send", words), run=run).status == "ok"
    assert len(outbox.sent()) == 3


def test_a_keyed_tool_without_a_key_is_refused() -> None:
    def send(text: str) -> str:
        """Send."""
        return text

    with pytest.raises(
        AgentError, match="tool send takes no key; a keyed function has an argument `key: str`"
    ):
        Tool.of(send, keyed=True, inline=True)
