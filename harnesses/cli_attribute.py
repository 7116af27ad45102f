"""The command `attribute`: what a harness and its model lose, part by part; heavy imports stand in the handler."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from harnesses.cli_effort import add_effort, effort, steps, table

if TYPE_CHECKING:
    from harnesses.attribution import Attribution
    from harnesses.case import Case
    from harnesses.spec import Spec

DONE = 0
LABELS = {
    "total": "V*(task) - J",
    "tools_control_loop": "  tools, control and loop",
    "context": "  context",
    "model": "  model",
}


def add_attribute(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "attribute",
        help="split the loss of a harness and its model into tools, context and model",
        description="Split V*(task) - J, what the model loses in this harness, into what tools, control and loop "
        "cost, what the context map loses for every stateless model, and what is left to the model.",
    )
    parser.add_argument("spec", metavar="SPEC", help="path of a SPEC.toml")
    parser.add_argument(
        "--against",
        metavar="SPEC2",
        help="another harness for the same task and model: share out the difference of J by exact Shapley values",
    )
    add_effort(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Compute and print."""
    from harnesses.attribution import attribute
    from harnesses.case import Case
    from harnesses.spec import read_spec

    spec = read_spec(args.spec)
    other = _other(spec, args)
    with steps(args, 5) as begin:
        case = Case(spec, effort(args))
        found = attribute(case, begin)
        shares = None
        if other is not None:
            begin("Shapley shares")
            shares = _shares(case, other)
    result = found.json() | {"certified": found.certified, "spec": spec.json()}
    if shares is not None:
        result["against"] = {"spec": args.against, **shares}
    print(json.dumps(result, allow_nan=False) if args.json else _text(args, case, found, shares))
    return DONE


def _other(spec: Spec, args: argparse.Namespace) -> Spec | None:
    """The spec of --against; ModelError where it is about something else."""
    from harnesses.spec import read_spec
    from pomdp.model import ModelError

    if args.against is None:
        return None
    other = read_spec(args.against)
    if (
        other.task.digest != spec.task.digest
        or other.criterion != spec.criterion
        or other.model != spec.model
    ):
        raise ModelError(
            f"{args.against}: task, what counts and model must be those of {args.spec}, or the difference is not the "
            "harness's; change only tools, control, loop and context"
        )
    return other


def _shares(case: Case, other: Spec) -> dict[str, Any]:
    """J of the other harness and the exact Shapley share of each part that differs."""
    from harnesses.attribution import changed_parts, mixed, shapley
    from harnesses.case import Case

    spec = case.spec
    parts = changed_parts(spec.harness, other.harness)

    def value(taken: frozenset) -> Fraction:
        if not taken:
            return _rounded(case.returned)
        harness = mixed(spec.harness, other.harness, [name for name in parts if name in taken])
        return _rounded(Case(spec.with_harness(harness), case.effort).returned)

    shares = shapley(value, parts)
    total = sum(shares.values(), Fraction(0))
    return {
        "return": float(_rounded(case.returned) + total),
        "difference": float(total),
        "shapley": {name: float(share) for name, share in shares.items()},
    }


def _rounded(value: float) -> Fraction:
    """J to twelve places: equal returns that were summed in another order differ beyond."""
    return Fraction(round(value, 12))


def _text(args: argparse.Namespace, case: Case, found: Attribution, shares: dict[str, Any] | None) -> str:
    """The table for a reader."""
    spec = case.spec
    horizon = "" if spec.criterion.horizon is None else f", horizon {spec.criterion.horizon}"
    lines = [f"{spec.task_text}   discount {spec.criterion.gamma:g}{horizon}   model {spec.model.text}"]
    values = [
        ("V*(M), the task", found.task),
        ("V*(M_0), behind tools, control and loop", found.inner),
        (f"Vo(M_H), best stateless under {case.induced.phi.name}", found.stateless),
        ("J, this model", found.achieved),
    ]
    middle = found.at_midpoints()
    rows = [["", "interval", "width"]]
    rows += [[label, str(interval), f"{interval.width:.2g}"] for label, interval in values]
    rows += [["lost", "interval", "at the midpoints"]]
    rows += [
        [label, str(getattr(found, name)), f"{float(middle[name]):.7g}"] for name, label in LABELS.items()
    ]
    lines.append(table(rows))
    if shares is not None:
        lines.append(
            f"against {args.against}: J {shares['return']:.10g}, difference {shares['difference']:.10g}"
        )
        lines += [f"  {name:<10} {share:+.10g}" for name, share in shares["shapley"].items()]
        if not shares["shapley"]:
            lines.append("  the two harnesses are the same in all four parts")
    return "\n".join(lines)
