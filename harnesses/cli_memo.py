"""The command `memo`: the architecture decision of a spec or of a worked example; heavy imports stand inside."""

from __future__ import annotations

import argparse
import json
from typing import Any

from harnesses.cli_effort import add_effort, steps

DONE = 0


def add_memo(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "memo",
        help="workflow, single agent or multi-agent: the decision memo, with the value of feedback computed",
        description="The five axes, the decision tree and the five-field memo for the [memo] table of a SPEC.toml. "
        "With a task the value of feedback is computed and compared with the stated cost of agency; without one "
        "all answers come from the table.",
    )
    parser.add_argument(
        "spec", metavar="SPEC", nargs="?", help="path of a SPEC.toml; it may have a [memo] alone"
    )
    parser.add_argument("--example", metavar="NAME", help="a worked example: A, B, C, E1.4 or E1.6")
    add_effort(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Compute and print."""
    from harnesses.architecture import write_memo
    from harnesses.memo_examples import EXAMPLES
    from harnesses.spec import memo_spec, read_memo
    from pomdp.model import ModelError

    names = {name.lower(): name for name in EXAMPLES}
    if (args.spec is None) == (args.example is None):
        raise ModelError("memo takes a SPEC.toml or --example NAME, one of them, such as --example A")
    if args.spec is not None:
        title = args.spec
        document, spec = read_memo(args.spec)
    else:
        name = names.get(args.example.lower())
        if name is None:
            raise ModelError(f"there is no example {args.example!r}; known: {', '.join(EXAMPLES)}")
        title, document = f"example {name}", EXAMPLES[name]
        spec = memo_spec(document)
    with steps(args, 1) as begin:
        begin("V*, W and W_N" if spec else "deciding")
        try:
            memo = write_memo(title, document, spec, gap=args.gap, time_limit=args.time)
        except ModelError as error:
            raise ModelError(f"{title}: {error}") from None
    print(json.dumps(memo.json(), allow_nan=False) if args.json else memo.markdown())
    return DONE
