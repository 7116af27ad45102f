"""The command `guard`: thresholds, demo and report here, select, plan and monitor in cli_guard_data.

Heavy imports stand inside the handlers.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnesses.cli_guard_data import add_monitor, add_plan, add_select

if TYPE_CHECKING:
    from harnesses.guard.costs import Costs, Reviewer
    from harnesses.guard.region import Thresholds
    from harnesses.guard.report import Report
    from harnesses.guard.scores import Scores

DONE, FINDING = 0, 1
LARGEST_COST = 10**100
"""Squares of costs are summed in floats."""


def add_guard(subparsers: Any) -> None:
    """Add the command, and its own commands, to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "guard",
        help="a guard in front of one call: thresholds from costs, bounds on a file of reports, selection, monitor",
        description="A guard reads the probability p that a call is allowed, and acts, asks a person or escalates.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="guard_command", required=True)
    # The package of studies adds an option that draws to one of them.
    parser.set_defaults(guard_commands=commands)
    _add_thresholds(commands)
    _add_demo(commands)
    _add_report(commands)
    add_select(commands)
    add_plan(commands)
    add_monitor(commands)


def _add_costs(parser: argparse.ArgumentParser, given: bool) -> None:
    """The four costs, all required unless `given`, and the reviewer's errors."""
    defaults = {"wrong": "20", "ask": "1/2", "miss": "4", "escalate": "3"}
    meaning = {
        "wrong": "a disallowed call carried out",
        "ask": "a question to the reviewer",
        "miss": "a disallowed call that the reviewer rejects",
        "escalate": "a hand-over",
    }
    for name, text in meaning.items():
        shown = f" (default {defaults[name]})" if given else ""
        parser.add_argument(
            f"--{name}",
            metavar="C",
            required=not given,
            default=defaults[name] if given else None,
            help=f"cost of {text}{shown}",
        )
    parser.add_argument(
        "--reviewer-error", metavar="E0", default="0", help="chance to approve a disallowed call"
    )
    parser.add_argument("--reject-error", metavar="E1", default="0", help="chance to reject an allowed call")
    parser.add_argument("--reject-cost", metavar="R", default="0", help="cost of an allowed call rejected")


def costs_of(args: argparse.Namespace) -> tuple[Costs, Reviewer]:
    """The costs and the reviewer that the options name. GuardError for what is none, or too large to print."""
    from harnesses.guard.costs import Costs, Reviewer
    from harnesses.guard.region import GuardError

    costs = Costs(args.ask, args.miss, args.escalate, args.wrong).exact()
    reviewer = Reviewer(args.reviewer_error, args.reject_error, args.reject_cost).exact()
    for name, cost in {**vars(costs), "reject-cost": reviewer.r}.items():
        if cost > LARGEST_COST:
            raise GuardError(f"--{name} is above 1e100, which no table can sum; give a cost such as 20")
    return costs, reviewer


def thresholds_of(args: argparse.Namespace) -> Thresholds:
    """Those of the costs, each replaced by the option of its name; tau_esc is at most tau_act."""
    from harnesses.guard.region import Thresholds
    from harnesses.guard.thresholds import thresholds

    if args.tau_act is not None and args.tau_esc is not None:
        return Thresholds(args.tau_act, args.tau_esc)
    found = thresholds(*costs_of(args))
    if args.tau_esc is not None:
        return Thresholds(found.tau_act, args.tau_esc)
    act = found.tau_act if args.tau_act is None else args.tau_act
    return Thresholds.capped(act, found.tau_esc)


def _add_thresholds(commands: Any) -> None:
    parser = commands.add_parser(
        "thresholds",
        help="the thresholds that costs imply",
        description="Act where p >= tau_act, else ask where p >= tau_esc, else escalate: the cheapest at every p.",
    )
    _add_costs(parser, given=False)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_thresholds)


def _thresholds(args: argparse.Namespace) -> int:
    from harnesses.guard.thresholds import thresholds

    found = thresholds(*costs_of(args))
    if args.json:
        print(json.dumps(found.json()))
        return DONE
    act, esc = found.tau_act, found.tau_esc
    print(
        f"tau_act  {_number(act):<22} act where p >= tau_act; if p is calibrated, at most {_number(1 - act)}"
    )
    print(f"{'':31} of what is sent alone is disallowed")
    if found.collapsed:
        print(f"tau_esc  {_number(esc):<22} escalate below; asking never pays at these costs")
    else:
        print(f"tau_esc  {_number(esc):<22} ask where tau_esc <= p < tau_act, escalate below")
    return DONE


def _number(value: Any) -> str:
    """A rational as text and, where that is not the same, as a decimal."""
    exact, short = str(value), f"{float(value):.6g}"
    return exact if exact == short else f"{exact} = {short}"


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="the toy guard of M14 §7 on its 400 items",
        description="400 items of M14 §7's generator, cut as on that page (0.969 is its rounding of 31/32).",
    )
    _add_costs(parser, given=True)
    parser.add_argument("--tau-act", metavar="X", default="0.969", help="act at or above (default 0.969)")
    parser.add_argument("--tau-esc", metavar="X", help="escalate below (default: as the costs imply, 3/8)")
    parser.add_argument("--overconfident", action="store_true", help="the guard that understates its doubts")
    parser.add_argument("--kappa", metavar="K", type=float, default=4.0, help="by this factor (default 4)")
    parser.add_argument("--count", metavar="N", type=int, default=400, help="that many items (default 400)")
    parser.add_argument("--seed", metavar="S", type=int, default=14, help="of the generator (default 14)")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the items, columns p and y")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_demo)


def _demo(args: argparse.Namespace) -> int:
    from harnesses.guard.demo import demo_items
    from harnesses.guard.report import report

    cut = thresholds_of(args)
    costs, reviewer = costs_of(args)
    items = demo_items(args.count, args.seed, args.kappa if args.overconfident else 1)
    found = report(items, cut, costs, reviewer=reviewer)
    if args.csv is not None:
        from pomdp.whole_file import write_whole

        rows = (f"{p!r},{y}\n" for p, y in zip(items.p.tolist(), items.y.tolist()))
        write_whole(args.csv, "p,y\n" + "".join(rows))
    _print(args, found)
    return DONE


def _add_report(commands: Any) -> None:
    """`report`; the package of studies gives it `--plot`."""
    parser = commands.add_parser(
        "report",
        help="what a guard does on a file of reports and labels, and whether its promise holds",
        description="SCORES has columns p (the report) and y (1 allowed, 0 not), optionally p_injected and group. The "
        "promise: at most 1 - tau_act of what is sent alone is disallowed. Exit code 1 where it is refuted.",
    )
    parser.add_argument("scores", metavar="SCORES", type=Path, help="a CSV or Parquet file")
    _add_costs(parser, given=False)
    parser.add_argument("--tau-act", metavar="X", help="act at or above (default: as the costs imply)")
    parser.add_argument("--tau-esc", metavar="X", help="escalate below (default: as the costs imply)")
    parser.add_argument(
        "--confidence", metavar="C", type=float, default=0.95, help="of the verdict's ends, one-sided (0.95)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_report)


def _report(args: argparse.Namespace) -> int:
    return told(args, reported(args)[1])


def reported(args: argparse.Namespace) -> tuple[Scores, Report]:
    """The scores, read once because they may come by a pipe, and their report."""
    from harnesses.guard.report import report
    from harnesses.guard.scores import read_scores

    cut = thresholds_of(args)
    costs, reviewer = costs_of(args)
    scores = read_scores(args.scores)
    return scores, report(scores, cut, costs, args.confidence, reviewer)


def told(args: argparse.Namespace, found: Report) -> int:
    """Print the report; the exit code of its verdict."""
    from harnesses.guard.report import REFUTED

    _print(args, found)
    return FINDING if found.verdict == REFUTED else DONE


def _print(args: argparse.Namespace, found: Report) -> None:
    print(json.dumps(found.json(), allow_nan=False) if args.json else found.text())
