"""Report text: the tables of groups and the line of a run that a person reads; imports the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harnesses.logs.report import FAILURES, RULES, Group, RunReport

Rows = list[list[Any]]


def plain(text: str) -> str:
    """Text of a log made safe for a terminal: whatever is no printable character is escaped, line ends apart."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def run_line(report: RunReport, group: Group) -> str:
    """One run in one line."""
    run = report.run
    words = [group.folder, group.setting, run.id, _verdict(run.outcome.success)]
    words += [f"{report.calls} calls", f"{report.tokens} tokens"]
    words += [f"{report.statuses[status]} {status}" for status in FAILURES if report.statuses[status]]
    for rule in RULES:
        at = getattr(report.stalls, rule)
        words += [f"stalled ({rule}) at {at}"] if at is not None else []
    for found in report.maps:
        words.append(f"{found.map} drops {found.results} of {found.of_results} results")
    return "  ".join(word for word in words if word)


def group_tables(groups: Sequence[dict[str, Any]]) -> Iterable[Rows]:
    """Tables, each with its head, of what the groups have to say; a table with nothing in it is left out."""
    tables = [
        _outcomes(groups),
        _failures(groups),
        _maps(groups),
        _injections(groups),
        _lengths(groups),
        _counts(groups),
    ]
    return (rows for rows in tables if len(rows) > 1)


def _outcomes(groups: Sequence[dict[str, Any]]) -> Rows:
    rows: Rows = [["folder", "format", "files", "runs", "tasks", "success", "calls", "tokens", "counted by"]]
    for group in groups:
        success = "-" if group["successes"] is None else f"{group['successes']} of {group['judged']}"
        rows.append(
            [_name(group), group["format"], group["files"], group["runs"], group["tasks"] or "-", success]
            + [group["calls"], group["tokens"], " and ".join(sorted(group["counted_by"]))]
        )
    return rows


def _failures(groups: Sequence[dict[str, Any]]) -> Rows:
    head = [f"{status} (runs)" for status in FAILURES]
    rows: Rows = [["results by status, runs stalled", *head, *(f"stalled: {rule}" for rule in RULES)]]
    for group in groups:
        failed = [f"{group['failures'][status]} ({group['runs_with'][status]})" for status in FAILURES]
        rows.append([_name(group), *failed, *(group["runs_stalled"][rule] for rule in RULES)])
    return rows


def _maps(groups: Sequence[dict[str, Any]]) -> Rows:
    rows: Rows = [["context map", "folder", "runs touched", "results dropped", "share", "share of tokens"]]
    for group in groups:
        for found in group["maps"]:
            rows.append(
                [
                    found["map"],
                    _name(group),
                    f"{found['runs_touched']} of {group['runs']}",
                    f"{found['results_dropped']} of {found['results']}",
                    _share(found["share_dropped"]),
                    _share(found["share_tokens_dropped"]),
                ]
            )
    return rows


def _injections(groups: Sequence[dict[str, Any]]) -> Rows:
    keys = ("attempted", "carried_out", "utility", "utility_without_injected_goal", "runs_with_denial")
    rows: Rows = [
        ["injections", "attempted", "carried out", "utility", "utility, not carried out", "with a denial"]
    ]
    for group in groups:
        found = group["injections"]
        if found is not None:
            rows.append([_name(group), *("-" if found[key] is None else found[key] for key in keys)])
    return rows


def _lengths(groups: Sequence[dict[str, Any]]) -> Rows:
    rows: Rows = [["a success is shorter than a failure", "within a task", "pairs", "tasks", "over all runs"]]
    for group in groups:
        found = group["length"]
        if found is not None:
            within = _share(found["success_is_shorter_within_task"])
            over_all = _share(found["success_is_shorter_over_all_runs"])
            rows.append([_name(group), within, found["pairs"], found["tasks"], over_all])
    return rows


def _counts(groups: Sequence[dict[str, Any]]) -> Rows:
    rows: Rows = [["counts", ""]]
    for group in groups:
        words = ", ".join(f"{name} {count}" for name, count in group["counts"].items())
        if words:
            rows.append([_name(group), words])
    return rows


def _name(group: dict[str, Any]) -> str:
    return f"{group['folder']} {group['setting']}".strip()


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _verdict(success: bool | None) -> str:
    return {True: "success", False: "failure", None: ""}[success]
