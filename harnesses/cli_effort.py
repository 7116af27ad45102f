"""Options and progress that every command on a harness shares; imports what it needs inside its functions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pomdp.cli import nonnegative, positive

if TYPE_CHECKING:
    from harnesses.case import Effort


def add_effort(parser: argparse.ArgumentParser) -> None:
    """`--gap`, `--time` and `--json`."""
    parser.add_argument(
        "--gap", metavar="X", type=nonnegative, default=1e-6, help="stop at this width (1e-6)"
    )
    parser.add_argument(
        "--time", metavar="S", type=positive, default=10.0, help="search for S s at most for each bound (10)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def effort(args: argparse.Namespace) -> Effort:
    """What the options ask for."""
    from harnesses.case import Effort

    return Effort(gap=args.gap, seconds=args.time)


@contextmanager
def steps(args: argparse.Namespace, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on standard error that names each of `total` steps as it begins; on a terminal alone."""
    if args.json or not sys.stderr.isatty():
        yield lambda text: None
        return
    from tqdm import tqdm

    with tqdm(
        total=total, leave=False, file=sys.stderr, dynamic_ncols=True, bar_format="{desc} {bar} {n}/{total}"
    ) as bar:
        begun = False

        def begin(text: str) -> None:
            nonlocal begun
            bar.update(int(begun))
            begun = True
            bar.set_description_str(text)

        yield begin


def table(rows: list[list[Any]]) -> str:
    """Rows of cells as text in columns, the first row being the head."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(texts[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in texts
    )
