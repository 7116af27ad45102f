"""Deciders: one by its name, as a command line gives it; imports toy, scripted, and lm and jev when they are named."""

from __future__ import annotations

from typing import Any

from harnesses.desk.decider import JEV, LM, NAMES, SCRIPTED, TOY, Decider, DeciderError
from harnesses.desk.questions import SEND_EMAIL

P_ROUTE, P_ALLOW = 0.91, 0.80
"""What a scripted decider says unless told otherwise. Source: M14 §4, the worked example."""


def decider_named(
    name: str,
    model: str | None = None,
    *,
    p_route: Any = P_ROUTE,
    p_allow: Any = P_ALLOW,
    route: str = SEND_EMAIL,
) -> Decider:
    """The decider of a name among NAMES; `model` is Jev's, the toy's calibrator.

    p_route, p_allow, route: what the scripted one says. Raises DeciderError for another name, and where what the
    decider needs (weights, a package, a key) is not there.
    """
    if name == TOY:
        from harnesses.desk.toy import BETA, toy

        return toy(BETA if model is None else model)
    if name == SCRIPTED:
        from harnesses.desk.scripted import Scripted

        return Scripted(route, p_route, p_allow)
    if name == LM:
        from harnesses.desk.lm import smollm2

        return smollm2()
    if name == JEV:
        from harnesses.desk.jev import jev

        return jev(model)
    raise DeciderError(f"no decider {name!r}; name one of {', '.join(NAMES)}")
