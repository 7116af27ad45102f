"""The list of task families and the reading of a task's name; imports the family files."""

from __future__ import annotations

import difflib

from pomdp.library.definition import Task
from pomdp.library.drift import DRIFT
from pomdp.library.family import Family
from pomdp.library.flip import FLIP
from pomdp.library.repo_repair import REPO_REPAIR
from pomdp.library.ticket_routing import TICKET_ROUTING
from pomdp.library.tiger import TIGER
from pomdp.library.tmaze import TMAZE
from pomdp.model import ModelError

FAMILIES: tuple[Family, ...] = (TIGER, TMAZE, FLIP, REPO_REPAIR, TICKET_ROUTING, DRIFT)


def tasks() -> dict[str, str]:
    """One line for each family, under its name with its arguments, optional ones in brackets."""
    return {family.usage: family.summary for family in FAMILIES}


def task(text: str) -> Task:
    """The task named `family[:argument...]`, such as `tmaze:4:0.9` or `repo-repair:3:2`.

    Names accept `_` and `-`; arguments are exact rationals (`0.9`, `9/10`). Raises ModelError for an unknown
    name, listing the known ones, and for a missing, surplus or out-of-range argument.
    """
    name, *arguments = (part.strip() for part in text.split(":"))
    wanted = name.lower().replace("-", "_")
    for family in FAMILIES:
        if family.name == wanted:
            return family(*arguments)
    near = difflib.get_close_matches(wanted, [family.name for family in FAMILIES], 1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise ModelError(f"no library task {name!r}{meant}; known: {', '.join(tasks())}")
