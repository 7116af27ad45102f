"""Jev's answers as the desk's: against a stand-in, and through the package's own client without network."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from harnesses.desk.decider import Choice, Decider, DeciderError, Noul, label
from harnesses.desk.jev import KEY, Jev, jev, plain

CHOICE = Choice("Which step?", {"ask": "one", "send": "two"}, MappingProxyType({"request": "Hello"}))
NOUL = Noul("May it?", {"email": {"to": "a@b.c"}, "registration": None})
TYPES = SimpleNamespace(
    Choice=lambda **given: {"type": "choice", **given}, Noul=lambda **given: {"type": "noul", **given}
)


class StandIn:
    """Answers every request alike, and keeps what it was asked."""

    def __init__(self, choices: Any = None, nouls: Any = None, error: Exception | None = None) -> None:
        self.result = SimpleNamespace(model="jev-7", choices=choices or {}, nouls=nouls or {})
        self.error = error
        self.asked: list[Any] = []

    def invoke(self, request: Mapping[str, Any]) -> Any:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return self.result


def answered(choice: str, confidence: float = 0.01, **probabilities: float) -> Any:
    return SimpleNamespace(choice=choice, probabilities=probabilities, confidence=confidence)


def decider(**given: Any) -> Jev:
    return Jev(StandIn(**given), TYPES, "jev-latest")


def test_a_choice_is_its_probabilities_and_not_its_confidence() -> None:
    mine = decider(choices={"question": answered("send", send=0.75, ask=0.25)})
    assert isinstance(mine, Decider) and label(mine) == "jev (jev-latest)"
    answer = mine.choose(CHOICE)
    assert (answer.choice, answer.p, list(answer.probabilities)) == ("send", 0.75, ["ask", "send"])
    asked = {"type": "choice", "instructions": "Which step?", "criteria": {"ask": "one", "send": "two"}}
    assert mine.classifier.asked == [{"state": {"request": "Hello"}, "questions": {"question": asked}}]
    assert label(mine) == "jev (jev-7)"


def test_a_noul_is_its_number() -> None:
    mine = decider(nouls={"question": SimpleNamespace(noul=0.8125)})
    assert mine.noul(NOUL) == 0.8125
    asked = {"type": "noul", "instructions": "May it?"}
    assert mine.classifier.asked == [
        {"state": {"email": {"to": "a@b.c"}, "registration": None}, "questions": {"question": asked}}
    ]


def test_rounded_probabilities_are_scaled_and_others_refused() -> None:
    rounded = decider(choices={"question": answered("ask", ask=0.33, send=0.665)}).choose(CHOICE)
    assert rounded.probabilities["ask"] == pytest.approx(0.33 / 0.995)
    assert sum(rounded.probabilities.values()) == pytest.approx(1, abs=1e-12)
    for wrong, said in (
        (answered("ask", ask=0.5, send=0.4), "sum to 0.9, not 1"),
        (answered("ask", ask=float("nan"), send=0.5), "sum to nan"),
        (answered("ask", ask=1.4, send=-0.4), "is 1.4.*, not a probability"),
        (answered("ask", ask=0.5, sent=0.5), "of ask, sent, not of ask, send"),
        (answered("ask", ask=1.0), "of ask, not of ask, send"),
        (answered("Ask", ask=0.5, send=0.5), "'Ask' is none of the options"),
    ):
        with pytest.raises(DeciderError, match=said):
            decider(choices={"question": wrong}).choose(CHOICE)


@pytest.mark.parametrize("noul", [1.01, -0.1, float("nan"), None, "often"])
def test_a_noul_that_is_no_probability_is_refused(noul: Any) -> None:
    with pytest.raises(DeciderError, match="jev"):
        decider(nouls={"question": SimpleNamespace(noul=noul)}).noul(NOUL)


def test_no_answer_is_no_decision() -> None:
    with pytest.raises(DeciderError, match="its response has no noul"):
        decider(nouls={"other": SimpleNamespace(noul=0.5)}).noul(NOUL)
    with pytest.raises(DeciderError, match="jev did not answer: TimeoutError: too slow$"):
        decider(error=TimeoutError("too\nslow")).choose(CHOICE)


def test_a_state_goes_out_as_json() -> None:
    state = MappingProxyType(
        {"day": date(2026, 3, 2), "share": Fraction(1, 3), "rows": ({"a": 1}, None, True)}
    )
    assert plain(state) == {"day": "2026-03-02", "share": "1/3", "rows": [{"a": 1}, None, True]}
    assert json.loads(json.dumps(plain(state))) == plain(state)


def test_without_key_or_package_there_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_typesafe", None)
    for key in (None, " "):
        monkeypatch.delenv(KEY, raising=False) if key is None else monkeypatch.setenv(KEY, key)
        with pytest.raises(DeciderError, match="jev needs a key of TypeSafe: set TYPESAFE_API_KEY"):
            jev()
    monkeypatch.setenv(KEY, "secret")
    with pytest.raises(DeciderError, match=r"jev needs the package .*pip install 'hpomdp\[jev\]'"):
        jev()


# From here on: through langchain-typesafe and its client, with a transport that reaches nobody.


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Jev]:
    """`service(respond, model)`: Jev over a transport that gives `respond(request as JSON, request)`."""
    pytest.importorskip("langchain_typesafe", reason="the extra jev is not installed")
    httpx2 = pytest.importorskip("httpx2")
    monkeypatch.setenv(KEY, "secret-key")
    monkeypatch.delenv("TYPESAFE_BASE_URL", raising=False)

    def make(respond: Callable[..., tuple[int, Any]], model: str | None = None) -> Jev:
        def handler(request: Any) -> Any:
            status, body = respond(json.loads(request.content), request)
            return httpx2.Response(status, json=body)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mine = jev(model)
        mine.classifier.client = httpx2.Client(transport=httpx2.MockTransport(handler))
        return mine

    return make


def test_the_package_carries_question_state_and_answer(service: Callable[..., Jev]) -> None:
    seen: list[Any] = []

    def respond(body: Any, request: Any) -> tuple[int, Any]:
        seen.append((body, str(request.url), request.headers["authorization"]))
        kind = body["questions"]["question"]["type"]
        choice = {
            "type": "choice",
            "choice": "ask",
            "probabilities": {"send": 0.3, "ask": 0.7},
            "confidence": 0.1,
        }
        answer = choice if kind == "choice" else {"type": "noul", "noul": 0.9375}
        return 200, {"model": "jev-2026-01", "answers": {"question": answer}}

    mine = service(respond, "jev-mini")
    assert mine.model == "jev-mini"
    assert mine.choose(CHOICE).probabilities == {"ask": 0.7, "send": 0.3}
    assert mine.noul(NOUL) == 0.9375 and mine.model == "jev-2026-01"
    (first, url, key), (second, _, _) = seen
    assert url == "https://api.typesafe.ai/v1/systemone" and key == "Bearer secret-key"
    assert first == {
        "state": {"request": "Hello"},
        "model": "jev-mini",
        "questions": {
            "question": {
                "type": "choice",
                "instructions": "Which step?",
                "criteria": {"ask": "one", "send": "two"},
            }
        },
    }
    assert second["questions"] == {"question": {"type": "noul", "instructions": "May it?"}}
    assert second["state"] == {"email": {"to": "a@b.c"}, "registration": None}


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"error": "bad secret-key"}, "TypeSafeAuthenticationError: .* 401 Unauthorized"),
        (429, {}, "TypeSafeRateLimitError"),
        (500, {}, "TypeSafeInternalServerError"),
        (200, {"model": "jev", "answers": {"question": {"type": "noul", "noul": 1.5}}}, "ValidationError"),
        (200, {"model": "jev", "answers": {}}, "its response has no noul"),
        (200, [], "ValidationError"),
    ],
)
def test_a_service_that_fails_is_a_decider_that_fails(
    status: int, body: Any, said: str, service: Callable[..., Jev]
) -> None:
    mine = service(lambda request, _: (status, body))
    with pytest.raises(DeciderError, match=said) as told:
        mine.noul(NOUL)
    assert "secret-key" not in str(told.value) and "a@b.c" not in str(told.value)


def test_a_nameless_model_is_refused(service: Callable[..., Jev]) -> None:
    with pytest.raises(DeciderError, match="jev cannot be made"):
        service(lambda request, _: (200, {}), " ")
