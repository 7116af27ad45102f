"""The table of a report for people; imports report.

A rate is printed with its counts: none of 30 is 0/30 with its upper end, and never 0 %.
"""

from __future__ import annotations

from fractions import Fraction

from harnesses.guard.region import Region
from harnesses.guard.report import CERTIFIED, REFUTED, Report

_WIDTH = 22
_LONGEST = 40


def text(report: Report) -> str:
    """All of a report, in sections; ends with a newline."""
    parts = [_head(report), _counts(report), _figures(report)]
    if report.groups:
        parts.append(_groups(report))
    if report.calibration is not None:
        parts.append(["calibration", *_indented(report.calibration.lines())])
    if report.injection is not None:
        parts.append(["injection", *_indented(report.injection.lines())])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(report: Report) -> list[str]:
    allowed = report.items - report.disallowed
    cut = report.thresholds
    act = "never act" if cut.tau_act is None else f"act at p >= {_exact(cut.tau_act)}"
    ask = "no questions" if cut.collapsed else f"ask at p >= {_exact(cut.tau_esc)}"
    return [
        f"{report.source}: {report.items} items, {allowed} allowed, {report.disallowed} not",
        f"{act}, {ask}, escalate below",
    ]


def _counts(report: Report) -> list[str]:
    rows = (
        ("sent alone", report.sent, report.bad),
        ("asked", report.asked, report.asked_disallowed),
        ("escalated", report.escalated, report.escalated_disallowed),
    )
    found = [f"{'':<{_WIDTH}}{'items':>9}{'not allowed':>13}"]
    return found + [f"{name:<{_WIDTH}}{count:>9}{bad:>13}" for name, count, bad in rows]


def _figures(report: Report) -> list[str]:
    always = " / ".join(
        f"{float(report.always[kind]):.6g}" for kind in (Region.ACT, Region.ASK, Region.ESCALATE)
    )
    rows = [
        ("share of sent, bad", str(report.share)),
        ("verdict", _verdict(report)),
        ("unsafe-action rate", str(report.uar)),
        ("allowed, held back", str(report.held_back)),
        ("cost per case", str(report.cost_per_case)),
        ("  always one region", f"{always} (act / ask / escalate)"),
    ]
    if report.reviewer.exact().e0:
        rows.append(
            (
                "wrongly approved",
                f"{float(report.wrongly_approved):.6g} expected of {report.asked_disallowed}",
            )
        )
    return [f"{name:<{_WIDTH}}{value}" for name, value in rows]


def _verdict(report: Report) -> str:
    """The verdict with what decides it."""
    if report.bound is None or report.sent == 0:
        return f"{report.verdict}: nothing is sent alone"
    bound, level = _exact(report.bound), f"one-sided at {report.confidence:.6g}"
    upper, lower = f"upper end {report.share_upper:.4f}", f"lower end {report.share_lower:.4f}"
    if report.verdict == CERTIFIED:
        return f"{report.verdict}: {upper} <= bound {bound}, {level}"
    if report.verdict == REFUTED:
        return f"{report.verdict}: {lower} > bound {bound}, {level}"
    return f"{report.verdict}: {lower} <= bound {bound} < {upper}, {level}"


def _groups(report: Report) -> list[str]:
    names = list(map(_name, report.groups))
    width = max(_WIDTH, *(len(name) + 2 for name in names))
    found = [f"{'group':<{width}}{'items':>9}{'sent':>9}{'bad':>6}  verdict, UAR (each group for itself)"]
    for name, one in zip(names, report.groups.values()):
        found.append(f"{name:<{width}}{one.items:>9}{one.sent:>9}{one.bad:>6}  {one.verdict}, {one.uar}")
    return found


def _name(group: str) -> str:
    """A group's name on one line, which no terminal takes for a command, and short."""
    text = group if group.isprintable() else repr(group)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _exact(value: Fraction) -> str:
    """A short fraction with its decimals, else the decimals alone."""
    decimals = f"{float(value):.6g}"
    exact = str(value)
    return f"{exact} = {decimals}" if "/" in exact and len(exact) <= 9 else decimals


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
