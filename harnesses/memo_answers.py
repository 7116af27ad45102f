"""The [memo] table of a SPEC.toml, read and validated: what a memo cannot compute; imports pomdp.model alone.

    [memo]
    tasks = "Customer tickets; they differ in topic and in tone."   # field 1 of the memo, in your words

    # Each question is a table of an answer and one sentence of justification.
    tools = {answer = "fixed", count = 2, why = "..."}              # fixed | varies: the order of the tools; how many
    sequence = {answer = "yes", why = "..."}                        # yes | no: are the steps known at design time?
    verifier = {answer = "deterministic", name = "pytest", reliability = 0.99, why = "..."}  # | judged | none
    failure = {answer = "low", irreversible = ["send"], why = "..."}                         # low | high
    subtasks = {answer = "shared", why = "..."}                     # shared | distinct large contexts; the latter with
                                                                    # coordination = "yes" | "no": is it worth its cost?
    variance = {answer = "low", types = ["billing"], why = "..."}   # low | high: of the tasks' structure
    persistence = {answer = "no", why = "..."}                      # yes | no: resume, checkpoints, human breakpoints
    stronger_models = {answer = "no", why = "..."}                  # yes | no: ride on better models to come

    # With a task, `sequence` is computed and may be left out; one of these two is needed in its place.
    price_per_step = 0.01     # what one step decided by a model costs more than one drawn, in the task's rewards
    tolerance = 0.05          # or: the gain below which no feedback is worth its trouble
    branch_on = ["passed"]    # observations at which the engineer can draw branches; none where left out

    revise = ["..."]          # further observations that would change the decision, in your words

`count`, `reliability`, `irreversible` and `types` may be left out (`count` not without a task). Source: M1 §1.8.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pomdp.model import ModelError


@dataclass(frozen=True)
class Question:
    """One key of [memo]: what it asks, its answers, what else its table may hold, and an example."""

    asks: str
    answers: tuple[str, ...]
    more: tuple[str, ...]
    example: str


QUESTIONS: Mapping[str, Question] = {
    "tools": Question(
        "how many distinct tools, and in a fixed order?",
        ("fixed", "varies"),
        ("count",),
        '{answer = "fixed", count = 2, why = "Every ticket is searched for, then answered."}',
    ),
    "sequence": Question(
        "is the sequence of steps known at design time for every task?",
        ("yes", "no"),
        (),
        '{answer = "yes", why = "No step depends on what an earlier one returned."}',
    ),
    "verifier": Question(
        "what checks an outcome?",
        ("deterministic", "judged", "none"),
        ("name", "reliability"),
        '{answer = "deterministic", name = "the test suite", reliability = 0.99, why = "It runs on every patch."}',
    ),
    "failure": Question(
        "what does a wrong action cost?",
        ("low", "high"),
        ("irreversible",),
        '{answer = "low", why = "A person reads every draft."}',
    ),
    "subtasks": Question(
        "do subtasks each need a large context of their own?",
        ("shared", "distinct"),
        ("coordination",),
        '{answer = "shared", why = "Every step reads the same repository."}',
    ),
    "variance": Question(
        "how much does the structure vary between tasks?",
        ("low", "high"),
        ("types",),
        '{answer = "low", why = "There are four kinds of ticket."}',
    ),
    "persistence": Question(
        "must runs resume after a crash, or wait for people?",
        ("yes", "no"),
        (),
        '{answer = "no", why = "A run takes seconds and can be repeated."}',
    ),
    "stronger_models": Question(
        "is it meant to gain from better models as they come?",
        ("yes", "no"),
        (),
        '{answer = "no", why = "The behaviour of today is what was approved."}',
    ),
}
PLAIN = ("tasks", "price_per_step", "tolerance", "branch_on", "revise")
COST_EXAMPLE = "tolerance = 0.05"


@dataclass(frozen=True)
class Answer:
    """An answer, its sentence of justification, and what else its table held."""

    value: str
    why: str
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """All answers to one memo; `sequence` may be absent, and one of `price_per_step` and `tolerance` be given,
    only where there is a task."""

    tasks: str
    answers: Mapping[str, Answer]
    price_per_step: float | None = None
    tolerance: float | None = None
    branch_on: tuple[str, ...] = ()
    revise: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Answer:
        return self.answers[key]

    @property
    def sequence(self) -> Answer | None:
        """The stated answer to question 1."""
        return self.answers.get("sequence")


def parse_answers(given: Any, *, with_task: bool) -> Answers:
    """The answers in a [memo] table. One ModelError lists all that is missing; another names a wrong entry."""
    table = _table(given, "memo", 'tasks = "Customer tickets."')
    _known(table, (*PLAIN, *QUESTIONS), "[memo]")
    _complain_of_missing(table, with_task)
    price, tolerance = (_amount(table, key) for key in ("price_per_step", "tolerance"))
    if price is not None and tolerance is not None:
        raise ModelError(
            "[memo] gives price_per_step and tolerance; keep the one that is your cost of agency"
        )
    idle = next((key for key in PLAIN[1:4] if key in table and not with_task), None)
    if idle:
        raise ModelError(f'[memo] gives {idle}, which needs a task, such as task = "library:repo_repair"')
    answers = {key: _answer(table[key], key, with_task) for key in QUESTIONS if key in table}
    return Answers(
        _text(table["tasks"], "memo.tasks", '"Customer tickets of four kinds."'),
        answers,
        price,
        tolerance,
        _texts(table.get("branch_on", []), "memo.branch_on", '["passed"]'),
        _texts(table.get("revise", []), "memo.revise", '["Tickets in a second language arrive."]'),
    )


def _complain_of_missing(table: Mapping[str, Any], with_task: bool) -> None:
    """One ModelError with every question that has no answer, and an example of the first of them."""
    missing = {} if "tasks" in table else {"tasks": "what is the system asked to do, and how does it vary?"}
    example = 'tasks = "Customer tickets; they differ in topic and in tone."'
    for key, question in QUESTIONS.items():
        if key not in table and not (with_task and key == "sequence"):
            example = example if missing else f"{key} = {question.example}"
            missing[key] = question.asks
    if with_task and not {"price_per_step", "tolerance"} & set(table):
        example = example if missing else COST_EXAMPLE
        missing["price_per_step or tolerance"] = "what does agency cost?"
    if missing:
        listed = ", ".join(f"{key} ({asks})" for key, asks in missing.items())
        raise ModelError(f"[memo] lacks {listed}; give for example {example}")


def _answer(given: Any, key: str, with_task: bool) -> Answer:
    """One question's table."""
    question, place = QUESTIONS[key], f"memo.{key}"
    table = _table(given, place, f"{key} = {question.example}")
    _known(table, ("answer", "why", *question.more), place)
    for part in ("answer", "why"):
        if part not in table:
            raise ModelError(f"{place} has no {part}; give for example {key} = {question.example}")
    value = _choice(table["answer"], question.answers, f"{place}.answer")
    why = _text(table["why"], f"{place}.why", '"A person reads every draft."')
    more = {name: _detail(table[name], f"{place}.{name}") for name in question.more if name in table}
    if key == "tools" and "count" not in more and not with_task:
        raise ModelError(f"{place} has no count; give for example {key} = {question.example}")
    if value == "distinct" and "coordination" not in more:
        raise ModelError(
            f'{place} has no coordination; say whether it is worth its cost, such as coordination = "yes"'
        )
    return Answer(value, why, more)


def _detail(value: Any, place: str) -> Any:
    """What else a question's table may hold, by its name."""
    name = place.rpartition(".")[2]
    if name == "count":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ModelError(f"{place} is {value!r}; give a whole number such as 3")
        return value
    if name == "coordination":
        return _choice(value, ("yes", "no"), place)
    if name == "reliability":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ModelError(f"{place} is {value!r}; give the share of outcomes judged rightly, such as 0.99")
        return float(value)
    if name == "name":
        return _text(value, place, '"the test suite"')
    return _texts(value, place, '["send"]')


def _choice(value: Any, answers: tuple[str, ...], place: str) -> str:
    """One of a question's answers; true and false stand for yes and no."""
    if isinstance(value, bool) and answers == ("yes", "no"):
        return "yes" if value else "no"
    if not isinstance(value, str) or value.lower() not in answers:
        choices = " or ".join(f'"{answer}"' for answer in answers)
        raise ModelError(f"{place} is {value!r}; answer {choices}")
    return value.lower()


def _amount(table: Mapping[str, Any], key: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ModelError(f"memo.{key} is {value!r}; give a number >= 0 such as {key} = 0.05")
    return float(value)


def _texts(value: Any, place: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise ModelError(f"{place} is {value!r}; give a list of texts such as {example}")
    return tuple(value)


def _text(value: Any, place: str, example: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ModelError(f"{place} is {value!r}; give a text such as {example}")
    return " ".join(value.split())


def _table(value: Any, place: str, example: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ModelError(f"{place} is {value!r}; give a table such as {example}")
    return value


def _known(table: Mapping[str, Any], names: tuple[str, ...], place: str) -> None:
    unknown = next((key for key in table if key not in names), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, names, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ModelError(f"{place} has no entry {unknown!r}{meant}; known: {', '.join(names)}")
