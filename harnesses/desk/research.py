"""Research: a coordinator that hands parts of a question to subagents and checks what came back; imports passages.

A subagent sees its task description and nothing else, has one tool and a budget, and gives back a short summary with a
record of every search that failed: an empty result is none. The coordinator tries again what may succeed later, looks
for words of the question that no part covers, and names every gap in its answer. Tokens of both are counted apart.
Source: M14 §9 (five rules for subagents), stretch B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from harnesses.desk.compaction import tokens
from harnesses.desk.passages import words
from harnesses.desk.toolbox import RETRIEVE
from harnesses.desk.transcript import calls, said
from harnesses.runtime.models import Model, ModelFailure, Reply, call, say
from harnesses.runtime.models import RawCall as Raw
from harnesses.runtime.parse import parse

Search = Callable[[str], Sequence[str]]
"""Passages for a query, none where the sources say nothing. Raises where the search itself failed."""
Planner = Callable[[str], Sequence[str]]
"""The parts of a question."""

BUDGET = 6
"""Model calls of one subagent, this project's choice."""
RETRIES = 1
"""Further attempts at a search that may succeed later."""
FORM = "Give the passages that bear on the objective, each with its source, and say which searches failed."

SEARCH_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": RETRIEVE,
        "description": "Search the sources by words. Returns passages, or says that there are none.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


class Kind(StrEnum):
    """Why a search failed; an empty result is no failure."""

    RETRY = "temporary, a retry may work"
    DENIED = "not permitted"
    BROKEN = "broken"
    BUDGET = "the budget was used up"


@dataclass(frozen=True)
class Task:
    """All that a subagent knows: every constraint has to stand here, for it sees nothing of the conversation."""

    objective: str
    constraints: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    form: str = FORM

    def text(self) -> str:
        """The description."""
        parts = [f"Objective: {self.objective}"]
        parts += [f"Constraint: {line}" for line in self.constraints]
        parts += [f"Known already: {line}" for line in self.known]
        return "\n".join([*parts, f"Answer: {self.form}"])


@dataclass(frozen=True)
class Failure:
    """A search that was not answered: the query, why, the error's words, and the objective that it was meant for."""

    query: str
    kind: Kind
    detail: str
    meant_for: str


@dataclass(frozen=True)
class Summary:
    """What a subagent gives back: not its transcript. `empty` are queries that worked and found nothing."""

    task: Task
    found: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    words: str = ""
    tokens: int = 0


@dataclass(frozen=True)
class Report:
    """The coordinator's result. `uncovered`: words of the question in no part's objective and no passage.

    `tokens` of the coordinator (descriptions and summaries), `subagent_tokens` of all subagents, contexts counted at
    every call as a provider bills them.
    """

    question: str
    parts: tuple[Summary, ...]
    uncovered: tuple[str, ...]
    tokens: int
    subagent_tokens: int

    @property
    def gaps(self) -> tuple[Failure, ...]:
        """The searches that failed to the end."""
        return tuple(failure for part in self.parts for failure in part.failures)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing that is known to be missing."""
        return not self.gaps and not self.uncovered

    def text(self) -> str:
        """The answer, which says what it does not cover."""
        lines = [f"Question: {self.question}"]
        for part in self.parts:
            lines += [f"{part.task.objective}:", *(f"  {passage}" for passage in part.found)]
            if not part.found:
                lines.append(
                    "  The sources that were searched say nothing."
                    if not part.failures
                    else "  Nothing was found."
                )
        lines += [
            f"Not searched: {f.query!r} for {f.meant_for!r} ({f.kind.value}: {f.detail})" for f in self.gaps
        ]
        if self.uncovered:
            lines.append(f"No part covers: {', '.join(self.uncovered)}")
        return "\n".join([*lines, "This answer is complete." if self.complete else "This answer is partial."])


@dataclass(frozen=True)
class Researcher:
    """The scripted language model of a subagent: searches for its objective, then for each of its constraints."""

    name: str = "scripted researcher"

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """The next search, or the end."""
        lines = str(messages[0]["content"]).splitlines()
        wanted = [
            line.partition(": ")[2] for line in lines if line.startswith(("Objective: ", "Constraint: "))
        ]
        done = sum(message["role"] == "tool" for message in messages)
        return call(RETRIEVE, query=wanted[done]) if done < len(wanted) else say("I have searched for each.")


def run_subagent(task: Task, search: Search, model: Model | None = None, budget: int = BUDGET) -> Summary:
    """A loop of its own: the model sees the description and its own searches. Failures come back, none is raised."""
    used = Researcher() if model is None else model
    messages: list[dict[str, Any]] = [{"role": "user", "content": task.text()}]
    made = Summary(task)
    for step in range(budget):
        made = replace(made, tokens=made.tokens + sum(map(tokens, messages)))
        try:
            reply = used.reply(list(messages), [SEARCH_TOOL], step)
        except ModelFailure as error:
            kind = Kind.RETRY if error.transient else Kind.BROKEN
            return _failed(made, task.objective, kind, f"the model gave no reply: {error}")
        if not reply.calls:
            return replace(made, words=reply.text)
        message = said(reply, len(messages))
        messages.append(message)
        for asked in calls(message):
            made, content = _searched(made, asked, search)
            messages.append(
                {"role": "tool", "tool_call_id": asked["id"], "name": asked["name"], "content": content}
            )
    return _failed(made, task.objective, Kind.BUDGET, f"{budget} model calls")


def research(
    question: str,
    plan: Planner,
    search: Search,
    constraints: Sequence[str] = (),
    known: Sequence[str] = (),
    model: Model | None = None,
    retries: int = RETRIES,
) -> Report:
    """Split, hand out, try again, check coverage against the question itself.

    constraints: what the participant has said; each stands in every description. Raises ValueError where the plan has
    no part.
    """
    objectives = tuple(plan(question))
    if not objectives:
        raise ValueError(f"the plan has no part for {question!r}; give at least the question itself")
    parts = []
    for objective in objectives:
        task = Task(objective, tuple(constraints), tuple(known))
        parts.append(_retried(run_subagent(task, search, model), search, retries))
    spent = sum(
        tokens({"content": part.task.text()}) + sum(tokens({"content": p}) for p in part.found)
        for part in parts
    )
    return Report(
        question, tuple(parts), uncovered(question, parts), spent, sum(part.tokens for part in parts)
    )


def uncovered(question: str, parts: Sequence[Summary]) -> tuple[str, ...]:
    """Content words of the question that stand in no objective and no passage, in their order.

    A split can fail silently: each part succeeds, and none is about what was asked.
    """
    covered = {word for part in parts for text in (part.task.objective, *part.found) for word in words(text)}
    return tuple(dict.fromkeys(word for word in words(question) if word not in covered))


def _searched(made: Summary, asked: dict[str, Any], search: Search) -> tuple[Summary, str]:
    """The summary after one call, and what the model reads of it."""
    objective = made.task.objective
    read = parse(Reply(calls=(Raw(asked["name"], asked["arguments"]),)), 1)
    query = "" if isinstance(read, str) else str(read[0].arguments.get("query") or "")
    if asked["name"] != RETRIEVE or not query.strip():
        return made, f"Fix: call {RETRIEVE} with a query in words"
    try:
        found = tuple(search(query))
    except (TimeoutError, ConnectionError) as error:
        return _failed(made, objective, Kind.RETRY, _told(error), query), f"Retry: {_told(error)}"
    except PermissionError as error:
        return _failed(made, objective, Kind.DENIED, _told(error), query), f"Stop: {_told(error)}"
    except Exception as error:  # whatever a source raises, the other parts go on
        return _failed(made, objective, Kind.BROKEN, _told(error), query), f"Stop: {_told(error)}"
    if not found:
        return replace(made, empty=(*made.empty, query)), "No passage: the search worked and found nothing."
    fresh = tuple(passage for passage in dict.fromkeys(found) if passage not in made.found)
    return replace(made, found=(*made.found, *fresh)), "\n".join(found)


def _retried(made: Summary, search: Search, retries: int) -> Summary:
    """The failed searches that may succeed later, made again by the coordinator; what is still failing stays."""
    for _ in range(retries):
        again = [f for f in made.failures if f.kind is Kind.RETRY and f.query]
        if not again:
            break
        made = replace(made, failures=tuple(f for f in made.failures if f not in again))
        for failure in again:
            asked = {"name": RETRIEVE, "arguments": _query(failure.query)}
            made, _ = _searched(made, asked, search)
    return made


def _query(text: str) -> str:
    """A query as the arguments of a call."""
    return call(RETRIEVE, query=text).calls[0].arguments


def _failed(made: Summary, objective: str, kind: Kind, detail: str, query: str = "") -> Summary:
    return replace(made, failures=(*made.failures, Failure(query, kind, detail, objective)))


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
