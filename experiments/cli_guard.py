"""`--plot` of the command `guard report`, here because it draws. Heavy imports stand inside the handler."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnesses.guard.region import Thresholds
    from harnesses.guard.scores import Scores

WIDTHS = (3.41, 5.5)
FORMATS = (".pdf", ".svg", ".png")


def add_plot(subparsers: Any) -> None:
    """Give `guard report`, where that command is, the options `--plot` and `--width`."""
    guard = subparsers.choices.get("guard")
    if guard is None:
        return
    parser = guard.get_default("guard_commands").choices["report"]
    parser.add_argument("--plot", metavar="FILE", type=plot_path, help="draw it: a .pdf, .svg or .png file")
    parser.add_argument(
        "--width", type=float, choices=WIDTHS, default=5.5, help="printed width in inches (5.5)"
    )
    parser.set_defaults(handler=_report)


def plot_path(text: str) -> Path:
    """A path whose ending names a format. ArgumentTypeError for another, before any work is done."""
    path = Path(text)
    if path.suffix not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text} ends in none of {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"the folder of {text} does not exist")
    return path


def _report(args: argparse.Namespace) -> int:
    """The report, after the figure that the command line asks for: where that fails nothing is printed."""
    from harnesses.cli_guard import reported, told

    scores, found = reported(args)
    if args.plot is not None:
        draw(args, scores, found.thresholds)
    return told(args, found)


def draw(args: argparse.Namespace, scores: Scores, cut: Thresholds) -> None:
    """The reliability diagram of the scores, with the regions that the report cut."""
    from experiments import style
    from experiments.reliability_figure import draw_reliability

    with style.styled():
        figure = draw_reliability(scores.p, scores.y, cut, args.width)
        written = f"tau_act {cut.tau_act}, tau_esc {cut.tau_esc}, {scores.size} items"
        style.save(figure, args.plot, {"scores": args.scores.name, "thresholds": written})
