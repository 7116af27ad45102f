"""The verbs `data` and `evaluate` of `desk`: the decision set of a split, and the measures of a decider on it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from harnesses.cli_desk_options import (
    add_decider,
    add_guard_taus,
    decider_with,
    plainly,
    probabilities_given,
    taus_given,
)
from harnesses.cli_desk_settings import SCRIPTED
from harnesses.cli_desk_show import DONE, lines_of

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
    with plainly(args):
        from harnesses.desk.generator import split

        lines = split(args.split).lines()
        if args.out is None:
            sys.stdout.write(lines)
        else:
            from pomdp.whole_file import write_whole

            write_whole(args.out, lines)
        return DONE


def add_evaluate(verbs: Any) -> None:
    """`evaluate`."""
    parser = verbs.add_parser(
        "evaluate",
        help="M14's Equations 6 to 9 of a decider and the running desk on a split, with denominators",
        description="Route items go through the decider, emails through the graph with a simulated reviewer, injected "
        "texts through whole runs. Rates come with numerator, denominator, standard error and exact ends.",
    )
    _add_split(parser)
    add_decider(parser, "the scripted clerk, which obeys an order that it reads with probability 0.8")
    add_guard_taus(parser)
    parser.add_argument(
        "--seed", metavar="N", type=int, help="another draw of the split than the published one"
    )
    parser.add_argument(
        "--lift", choices=("P6",), help="leave a rule in code unchecked, to see what it stops"
    )
    parser.add_argument(
        "--direct", action="store_true", help="emails by decider and thresholds alone, for the split large"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=evaluate)


def evaluate(args: argparse.Namespace) -> int:
    """Measure and print."""
    with plainly(args):
        from harnesses.cli_desk_open import model_with
        from harnesses.desk.evaluation import SEED, evaluate, steps_of
        from harnesses.desk.policy import GUARD_THRESHOLDS
        from harnesses.guard.region import Thresholds
        from pomdp.rng import as_word

        numbers, taus = probabilities_given(args), taus_given(args)
        thresholds = Thresholds(
            taus.get("act", GUARD_THRESHOLDS.tau_act), taus.get("esc", GUARD_THRESHOLDS.tau_esc)
        )
        seed = SEED if args.seed is None else args.seed
        as_word(seed, "--seed")
        # The clerk of the measures obeys injected orders; one that is named is taken as it is.
        model = None if args.model == SCRIPTED else model_with(args.model)
        decider = decider_with(args.decider, *numbers)
        with _bar(args, steps_of(args.split, seed)) as bar:
            found = evaluate(
                decider,
                args.split,
                seed,
                language_model=model,
                thresholds=thresholds,
                lifted=[args.lift] if args.lift else [],
                in_graph=not args.direct,
                progress=bar.update,
            )
        if args.json:
            print(json.dumps(found.json(), allow_nan=False))
        else:
            print("\n".join(lines_of(found.text())))
        return DONE


def _bar(args: argparse.Namespace, total: int) -> Any:
    from tqdm import tqdm

    quiet = True if args.json else None
    return tqdm(
        total=total, desc=f"desk evaluate, {args.decider}", unit="step", file=sys.stderr, disable=quiet
    )


def _add_split(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--split", choices=SPLITS, default="test", help="which items, by default test")
