"""Coverage: whether the parts of a question, and what they found, speak of all that it asks; imports passages.

A split can fail silently: three parts that all succeed, and none of them about half of the question. The check is at
the coordinator and against the original question. It compares words, not meanings: a synonym counts as a gap, so that
the error is to name one too many. Source: M14 §9 (fifth rule).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harnesses.desk.passages import words

_ASKING = frozenset(
    words(
        "about also any answer between compare could cover describe did each effect explain find forget give how "
        "impact include influence know list long many may mention might much must omit only please question role say "
        "should skip source summarise summarize tell than thank then whether why would"
    )
)
"""Words that ask, and have no subject of their own: no source need repeat them."""

_ENDINGS = ("ations", "ation", "ating", "ated", "ates", "ate", "ings", "ing", "ed", "es")

_BINDING = re.compile(
    r"\b(?:only|solely|exclusively|must|never|without|except|excluding|ignore|avoid|nothing|at least|at most|"
    r"no more than|(?:have|has|need|needs) to|(?:older|newer|earlier|later) than|from \d{4} on(?:wards?)?|"
    r"up to \d+|(?:under|below|within) \d+|no [\w-]+ (?:sources?|papers?|articles?|pages?|posts?)|"
    r"no (?:later|earlier|older|newer) than|not (?:before|after|older|later)|"
    r"or (?:later|earlier|newer|older|more|less)|since \d{4}|before \d{4}|after \d{4}|do not|don't)\b",
    re.IGNORECASE,
)


_REQUEST = re.compile(
    r"^\W*(?:please\s+)?(?:what|which|who|how|why|where|when|whether|is|are|does|do you|research|show|say|give)\b|"
    r"\b(?:tell|find|explain|describe|list|compare|summari[sz]e|cover|mention|include|forget|omit|skip|leave out)\b",
    re.IGNORECASE,
)
"""Sentences that ask for something, whatever else they demand: their words have to be spoken of."""


def terms(question: str) -> list[str]:
    """The words of a question that have to be spoken of, each once, in order; its constraints are none of them."""
    return list(dict.fromkeys(word for word in words(unbound(question)) if word not in _ASKING))


def unbound(question: str) -> str:
    """The question without the sentences that only bind the work; all of it where there are no others."""
    clauses = [
        clause
        for clause in _clauses(question)
        if clause.endswith("?") or _REQUEST.search(clause) or not _BINDING.search(clause)
    ]
    return " ".join(clauses) or question


def uncovered(question: str, said: Iterable[str]) -> list[str]:
    """The terms of the question that nothing of what was `said` (parts' questions, summaries) mentions."""
    spoken = {stem(word) for text in said for word in words(text)}
    return [term for term in terms(question) if stem(term) not in spoken]


def stem(word: str) -> str:
    """A word without its ending, four letters at least: calibration and calibrated are one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word.removesuffix("e") if len(word) > 4 else word


def stated(texts: Sequence[str]) -> list[str]:
    """The sentences by which a participant bound the work, word for word, each once: they travel in every task.

    A list of English phrases, in code so that none is forgotten; it takes a sentence too many rather than one too few.
    """
    found = [clause for text in texts for clause in _clauses(text) if _BINDING.search(clause)]
    return list(dict.fromkeys(found))


def _clauses(text: str) -> list[str]:
    """Sentences, and clauses that a semicolon or a line ends."""
    parts = re.split(r"(?<=[.!?;])\s+|\n+", text)
    return [" ".join(part.split()) for part in parts if part.strip()]
