"""Wishes: whether a request asks for a person in so many words; imports nothing.

A list of English phrases, checked in code so that such a wish is honoured at once and every time. It misses wishes that
are put otherwise: those remain for the router's `escalate`. Source: M14 §7 (an explicit request for a person is honored
at once).
"""

from __future__ import annotations

import re

_PERSON = (
    r"(?:human being|human|person|staff member|staff|agent|representative|manager|supervisor|colleagues?)"
)
_SOMEBODY = rf"(?:somebody|someone|anyone|anybody|people|{_PERSON})\b"
_DETERMINERS = r"(?:(?:an?|the|some|any|your|this|real|live|actual|human|one|member|of|from)\s+){0,4}"
_WHOM = _DETERMINERS + _SOMEBODY
_MY_CASE = r"(?:me|this|it|my (?:case|request|question|message))"

_PHRASES = (
    rf"\b(?:speak|talk|chat)\s+(?:to|with)\s+{_WHOM}",
    rf"\b(?:put|connect|hand|pass|forward|refer|escalate|transfer)\s+{_MY_CASE}\b[\w\s]{{0,20}}?\b(?:to|with)\s+{_WHOM}",
    rf"\b(?:want|need|get me|give me|prefer|would like)\s+an?\s+(?:real|live|actual)\s+{_PERSON}\b",
    r"\b(?:want|need|get me|give me|prefer|would like)\s+a\s+(?:human being|human|staff member)\b",
)
_WISHES = re.compile("|".join(_PHRASES), re.IGNORECASE)
_DECLINED = re.compile(
    r"\b(?:no need|not need|not want|don't (?:need|want)|without|instead of)\b[^.!?]*$", re.IGNORECASE
)


def person_asked_for(request: str) -> str | None:
    """The words by which a request asks for a person, None where it does not, or says that it need not be."""
    for found in _WISHES.finditer(request):
        if not _DECLINED.search(request[: found.start()]):
            return found.group()
    return None
