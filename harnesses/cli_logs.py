"""The command `logs`: what logs of other agents show, and what context maps would have dropped; heavy imports inside.

Runs are read and printed one after the other, so that a log of any size takes little memory.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnesses.cli_effort import table

if TYPE_CHECKING:
    from harnesses.context import ContextMap
    from harnesses.logs import Broken, Found, Group, RunReport, Tally

DONE, BROKEN_LINES = 0, 1
SHOWN = 20  # broken records that are shown one by one; the others are counted

Show = Callable[["RunReport", "Group", Path], None]


def add_logs(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "logs",
        help="logs of other agents: failures, stalls, injections, and what a context map would have dropped",
        description="Reads tau-bench, AgentDojo, mini-swe-agent, SWE-agent and LangGraph checkpoint logs, told apart "
        "by content. Tokens are ceil(characters/4) unless the log carries counts. A token budget of a map is for "
        "what follows the system prompt and the user's request. Exit code 1 where a record is broken.",
    )
    parser.add_argument(
        "path", metavar="PATH", type=Path, help="a log, or a folder that is searched for logs"
    )
    parser.add_argument(
        "--map",
        dest="maps",
        metavar="NAME:ARGS",
        action="append",
        default=[],
        help="a context map such as oldest_first:8000, last:10 or summary:latest; may be repeated",
    )
    parser.add_argument(
        "--count-head", action="store_true", help="budgets are for system prompt and user request too"
    )
    parser.add_argument("--estimate", action="store_true", help="do not use the counts that a log carries")
    parser.add_argument("--runs", action="store_true", help="a line for each run too; JSON has them always")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Refuse bad input, then read and print run by run, and the groups at the end."""
    from harnesses.context import parse_map
    from harnesses.logs import bind, find_logs

    maps = [bind(parse_map(text)) for text in args.maps]
    found = find_logs(args.path)
    return _as_json(args, maps, found) if args.json else _as_text(args, maps, found)


def _read(
    args: argparse.Namespace, maps: list[ContextMap], found: Found, show: Show
) -> tuple[dict[Group, Tally], list[Broken], int]:
    """Every run shown and counted; the groups, the first broken records and how many there are."""
    from harnesses.logs import Broken, Group, RunReport, Tally, runs

    names = tuple(phi.name for phi in maps)
    groups: dict[Group, Tally] = {}
    broken: list[Broken] = []
    count = 0
    with _progress(args, found) as report:
        for file, folder in found.logs:
            for item in runs(file, report):
                if isinstance(item, Broken):
                    count += 1
                    broken += [item] if len(broken) < SHOWN else []
                    continue
                one = RunReport.of(item.estimated() if args.estimate else item, maps, args.count_head)
                group = Group(folder, item.source, item.setting)
                groups.setdefault(group, Tally(names)).add(one, str(file))
                show(one, group, file)
    return groups, broken, count


@contextmanager
def _progress(args: argparse.Namespace, found: Found) -> Iterator[Callable[[int], Any]]:
    """A bar of the bytes read, on standard error; on a terminal alone, and not between the lines of --runs."""
    if args.json or not sys.stderr.isatty() or (args.runs and sys.stdout.isatty()):
        yield lambda read: None
        return
    from tqdm import tqdm

    with tqdm(
        total=found.bytes,
        unit="B",
        unit_scale=True,
        leave=False,
        file=sys.stderr,
        dynamic_ncols=True,
        delay=1,
    ) as bar:
        yield bar.update


def _estimator(args: argparse.Namespace) -> str:
    from harnesses.logs.tokens import ESTIMATOR, UNLESS_COUNTED

    return ESTIMATOR if args.estimate else ESTIMATOR + UNLESS_COUNTED


def _as_json(args: argparse.Namespace, maps: list[ContextMap], found: Found) -> int:
    """One object, of which the runs are written as they are read."""
    written = 0

    def show(one: RunReport, group: Group, file: Path) -> None:
        nonlocal written
        line = {"file": str(file), **group._asdict(), **one.json()}
        print((",\n" if written else "\n") + json.dumps(line, allow_nan=False), end="")
        written += 1

    head = {"estimator": _estimator(args), "head_counts": args.count_head, "maps": [phi.name for phi in maps]}
    print(json.dumps(head)[:-1] + ', "runs": [', end="")
    groups, broken, count = _read(args, maps, found, show)
    tail = {
        "groups": [tally.json(group) for group, tally in groups.items()],
        "broken": count,
        "first_broken": [{"file": str(b.file), "line": b.line, "problem": b.problem} for b in broken],
        "no_logs": [{"file": str(file), "reason": reason} for file, reason in found.others],
    }
    print("],\n" + json.dumps(tail, allow_nan=False)[1:])
    return BROKEN_LINES if count else DONE


def _as_text(args: argparse.Namespace, maps: list[ContextMap], found: Found) -> int:
    """Tables of the groups, after a line for each run where they are asked for."""
    from harnesses.logs.report_text import group_tables, plain, run_line

    def show(one: RunReport, group: Group, file: Path) -> None:
        if args.runs:
            print(plain(run_line(one, group)))

    groups, broken, count = _read(args, maps, found, show)
    if args.runs:
        print()
    print(f"tokens: {_estimator(args)}")
    if maps:
        what = "everything" if args.count_head else "what follows the system prompt and the user's request"
        print(f"budgets of maps: for {what}")
    for rows in group_tables([tally.json(group) for group, tally in groups.items()]):
        print("\n" + plain(table(rows)))
    if found.others:
        print(f"\nno logs: {len(found.others)} other files, such as {plain(str(found.others[0][0]))}")
    if count:
        print(f"\nbroken records: {count}" + (f", the first {SHOWN}:" if count > SHOWN else ":"))
        for one in broken:
            print(f"  {plain(str(one))}")
    return BROKEN_LINES if count else DONE
