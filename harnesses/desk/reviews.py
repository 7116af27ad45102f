"""Reviews: what a person has said to each question of a paused run, once for ever; imports database, state.

An answer is written down before the run goes on, so that a process that dies in between loses nothing: the next one
finds it here. It names the question it answers, which one pause of one run asked; no other question can get it. The
first answer stands: a second is refused.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from harnesses.desk.database import MEMORY, DeskError, table
from harnesses.desk.state import ACT, ESC

_SCHEMA = """CREATE TABLE IF NOT EXISTS reviews (
    question TEXT PRIMARY KEY, thread TEXT NOT NULL, call TEXT NOT NULL, verdict TEXT NOT NULL, by TEXT NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID"""


class Verdict(Enum):
    """What a person says of a pending email. It has no truth value, so that `if verdict:` cannot let one through."""

    APPROVE = "approve"
    REJECT = "reject"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self} is neither true nor false; write `verdict is Verdict.APPROVE`")

    @classmethod
    def of(cls, said: object) -> Verdict:
        """From the words `approve` and `reject`, or itself. DeskError for anything else, `yes` among it."""
        for verdict in cls:
            if said is verdict or said == verdict.value:
                return verdict
        raise DeskError(f"{said!r} is no verdict; answer approve or reject")


@dataclass(frozen=True)
class Review:
    """A verdict on `call` of `thread`, given to one question by somebody."""

    question: str
    thread: str
    call: str
    verdict: Verdict
    by: str = "reviewer"

    def json(self) -> dict[str, Any]:
        """As the data with which a run goes on."""
        return vars(self) | {"verdict": self.verdict.value}


def review_question(state: Mapping[str, Any]) -> dict[str, Any]:
    """What a person is shown of a pending email; `about` names exactly this email, number and thresholds."""
    pending, taus = state["pending"], state["taus"]
    shown = {
        "call": pending["id"],
        "email": pending["email"],
        "p_allow": state["p_allow"],
        "tau_esc": taus[ESC],
        "tau_act": taus[ACT],
        "request": state["case"]["request"],
    }
    return shown | {"about": sha256(repr(sorted(shown.items())).encode()).hexdigest()[:16]}


def review_answer(question: Mapping[str, Any], verdict: Verdict, by: str = "reviewer") -> dict[str, Any]:
    """An answer to this question, as `human_review` takes it."""
    return {"about": question["about"], "verdict": verdict.value, "by": by}


def addressed(answer: object, question: Mapping[str, Any]) -> tuple[Verdict, str] | None:
    """The verdict and who gave it; None for one that is not to this question, or says neither word."""
    if not isinstance(answer, Mapping) or answer.get("about") != question["about"]:
        return None
    found = next((verdict for verdict in Verdict if answer.get("verdict") == verdict.value), None)
    return None if found is None else (found, str(answer.get("by", "reviewer")))


class Reviews:
    """The reviews of a database; in memory unless a file is named."""

    def __init__(self, path: str | Path = MEMORY) -> None:
        self._table = table(path, _SCHEMA)

    def record(self, review: Review) -> None:
        """Write an answer down. DeskError where the question has one already, the same or another."""
        with self._table.transaction() as cursor:
            found = cursor.execute("SELECT verdict, by FROM reviews WHERE question = ?", (review.question,))
            row = found.fetchone()
            if row is None:
                values = (*review.json().values(), time.time())
                columns = ", ".join((*review.json(), "at"))
                cursor.execute(f"INSERT INTO reviews ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)
        if row is not None:
            raise DeskError(
                f"question {review.question[:8]} has been answered already: {row[0]}, by {row[1]}"
            )

    def of(self, question: str) -> Review | None:
        """The answer to a question, None where there is none."""
        columns = "question, thread, call, verdict, by"
        rows = self._table.rows(f"SELECT {columns} FROM reviews WHERE question = ?", question)
        if not rows:
            return None
        question, thread, call, verdict, by = rows[0]
        return Review(question, thread, call, Verdict(verdict), by)

    def close(self) -> None:
        """Close the database."""
        self._table.close()
