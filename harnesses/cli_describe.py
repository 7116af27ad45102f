"""The commands `describe` and `simulate SPEC`; heavy imports stand inside the handlers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harnesses.cli_effort import add_effort, effort, steps

if TYPE_CHECKING:
    from harnesses.case import Case
    from harnesses.describe import Description

DONE = 0


def add_describe(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "describe",
        help="the POMDP specification of a harness on a task: components, uncertainty in bits, what is confused",
        description="The seven components of the harness-induced POMDP, its sources of partial observability in bits "
        "a step, one pair of histories that the context map confuses, and what its actions cannot express.",
    )
    parser.add_argument("spec", metavar="SPEC", help="path of a SPEC.toml")
    add_effort(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Compute and print."""
    from harnesses.case import Case
    from harnesses.describe import describe
    from harnesses.spec import read_spec

    case = Case(read_spec(args.spec), effort(args))
    with steps(args, 1) as begin:
        begin("describing")
        found = describe(case)
    print(json.dumps(case.spec.json() | found.json(), allow_nan=False) if args.json else _text(case, found))
    return DONE


def spec_first(plain: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The handler of `simulate` that takes a SPEC.toml itself and leaves every other model to `plain`."""

    def handler(args: argparse.Namespace) -> int:
        from harnesses.spec import is_spec

        return _simulate(args) if is_spec(args.model) else plain(args)

    return handler


def _simulate(args: argparse.Namespace) -> int:
    """Monte Carlo of the spec's model in its harness, beside the exact J."""
    import numpy as np

    from harnesses.case import Case, Effort
    from harnesses.spec import read_spec
    from pomdp.cli_simulate import run_policy
    from pomdp.model import ModelError
    from pomdp.policy import Reactive
    from pomdp.simulate import check_counts, cut

    if args.policy is not None:
        raise ModelError(
            f"{args.model} names its own model; leave out --policy, or change the spec's entry `model`"
        )
    spec = read_spec(args.model).asked(args.discount, args.horizon)
    check_counts(args.episodes, args.seed)
    case = Case(spec, Effort(seconds=args.time))
    args.policy = spec.model.text
    cut(case.induced.model, spec.criterion, args.steps)
    # Past the horizon nothing is acted on, but the observation `over` needs a row.
    unused = np.repeat(case.pi[:1], case.induced.model.num_observations - len(case.pi), axis=0)
    policy = Reactive(np.vstack([case.pi, unused]), case.pi[0])
    return run_policy(args, case.induced.model, policy, spec.criterion, lambda: case.returned)


def _text(case: Case, found: Description) -> str:
    """The specification for a reader."""
    spec = case.spec
    lines = [f"{spec.task_text} in the harness {case.induced.phi.name}, model {spec.model.text}", ""]
    lines += [f"{c.symbol:<6} {c.name}: {c.sentence}" for c in found.components]
    lines += ["", "Partial observability, bits a step:"]
    lines += [
        f"  {s.bits:8.4f}  {s.kind} uncertainty {s.formula}, most of it: {s.largest}"
        if s.bits
        else f"  {0:8.4f}  {s.kind} uncertainty {s.formula}"
        for s in found.sources
    ]
    witness = found.sufficiency.decisive or found.sufficiency.witness
    lines += ["", f"Context loss V*(M_0) - Vo: {found.loss}"]
    if witness is not None:
        lines.append(witness.text())
    elif found.sufficiency.sufficient:
        lines.append("The context map confuses no two histories of equal length.")
    else:
        lines.append(
            f"No confused pair in histories of up to {found.sufficiency.depth} pairs; longer ones: undecided."
        )
    lines.append("")
    if found.coarser is None:
        lines.append("Every action of the task is exposed as it is.")
    else:
        names = ", ".join(found.coarser.actions)
        lines.append(
            f"Coarser than the task needs: {found.coarser.part} takes away {names}; that costs {found.coarser.cost}"
        )
    return "\n".join(lines)
