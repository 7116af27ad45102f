"""The verbs `data` and `evaluate` of `desk`: the decision set of a split, and the measures of a decider on it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from harnesses.cli_desk_options import plainly
from harnesses.cli_desk_show import DONE

SPLITS = ("train", "calibration", "dev", "test", "large")


def add_data(verbs: Any) -> None:
    """`data`."""
    parser = verbs.add_parser(
        "data",
        help="the labelled decision set, one JSON object a line",
        description="desk_decisions_synthetic: route, guard and injection items, drawn from a seed and labelled by "
        "the policy in code, each with the rule that decides it.",
    )
    _add_split(parser)
    parser.add_argument("--out", metavar="FILE", type=Path, help="write to a file")
    parser.set_defaults(handler=data)


def data(args: argparse.Namespace) -> int:
    """Print or write the lines."""
    with plainly():
        from harnesses.desk.generator import split

        lines = split(args.split).lines()
        if args.out is None:
            sys.stdout.write(lines)
        else:
            from pomdp.whole_file import write_whole

            write_whole(args.out, lines)
        return DONE


def _add_split(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--split", choices=SPLITS, default="test", help="which items, by default test")
