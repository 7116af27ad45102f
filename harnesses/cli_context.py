"""The command `context`: what context maps lose on a task, and the smallest sufficient one.

Heavy imports stand inside the handler.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harnesses.cli_effort import add_effort, effort, steps, table

if TYPE_CHECKING:
    from harnesses.context_loss import ContextLoss
    from harnesses.spec import Spec

DONE = 0


def add_context(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "context",
        help="what a context map loses: sufficiency with a witness, stateless optimum, loss, bits",
        description="For each context map: whether the context tells the belief, or the shortest pair of histories "
        "that it confuses; what the best stateless policy earns and what is lost against V*; information in bits.",
    )
    parser.add_argument("model", metavar="SPEC|MODEL", help="a SPEC.toml, a .pomdp file or library:NAME")
    parser.add_argument(
        "--map",
        dest="maps",
        metavar="NAME:ARGS",
        action="append",
        default=[],
        help="a context map such as last:2, oldest_first:3000, full:6 or pin:flip/t2:last:1; may be repeated",
    )
    parser.add_argument("--discount", metavar="G", help="discount from 0 to 1; the model's own by default")
    parser.add_argument("--horizon", metavar="N", type=int, help="count N steps only; keeps the discount")
    parser.add_argument(
        "--smallest", action="store_true", help="the smallest sufficient map instead: its three counts"
    )
    add_effort(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Read everything first, then compute and print map by map."""
    from harnesses.case import Case
    from harnesses.context_loss import ContextLoss

    specs = _specs(args)
    if args.smallest:
        return _smallest(args, specs[0][1])
    results, losses = [], []
    with steps(args, 4 * len(specs)) as begin:
        shared: Case | None = None
        for typed, spec in specs:
            case = Case(spec, effort(args)) if shared is None else shared.with_context(spec)
            shared = shared or case
            loss = ContextLoss(case)
            begin(f"{typed}: histories that share a context")
            _ = loss.sufficiency, loss.bits
            begin(f"{typed}: V* and recall")
            _ = loss.recall
            begin(f"{typed}: best stateless policy")
            _ = loss.stateless
            begin(f"{typed}: done")
            losses.append((typed, loss))
            results.append(loss.json(typed))
    spec = specs[0][1]
    if args.json:
        head = {"task": spec.task_text, "discount": spec.criterion.gamma, "horizon": spec.criterion.horizon}
        optimal = losses[0][1].optimal.json()
        print(json.dumps(head | {"optimal": optimal, "maps": results}, allow_nan=False))
    else:
        print(_text(spec, losses))
    return DONE


def _specs(args: argparse.Namespace) -> list[tuple[str, Spec]]:
    """The spec of each map as it was typed; a SPEC's own map where none is given. ModelError for bad input."""
    from harnesses.context import parse_map
    from harnesses.spec import is_spec, plain_spec, read_spec
    from pomdp.model import ModelError

    maps: Sequence[str] = args.maps
    if args.smallest and maps:
        raise ModelError("--smallest asks about the task, not about a map; leave out --map, or ask twice")
    recipes = [parse_map(text) for text in maps]
    if not is_spec(args.model):
        if not maps and not args.smallest:
            raise ModelError("give at least one context map, such as --map last:2, or --smallest")
        full = plain_spec(args.model, args.discount, args.horizon, parse_map("null"))
        return [(text, full.with_context(recipe)) for text, recipe in zip(maps, recipes)] or [("null", full)]
    spec = read_spec(args.model).asked(args.discount, args.horizon)
    if not maps:
        return [(spec.harness.context.name, spec)]
    return [(text, spec.with_context(recipe)) for text, recipe in zip(maps, recipes)]


def _smallest(args: argparse.Namespace, spec: Spec) -> int:
    """The three counts of the smallest sufficient map."""
    from harnesses.case import Case
    from harnesses.context_loss import few_contexts
    from harnesses.smallest import smallest

    case = Case(spec, effort(args))
    inner = case.inner.model
    with steps(args, 2) as begin:
        begin("beliefs and bisimulation")
        found = smallest(inner, spec.criterion.horizon)
        begin("merging contexts while Vo stays")
        fewest = few_contexts(case, found.phi)
    if args.json:
        head = {"task": spec.task_text, "discount": spec.criterion.gamma, "horizon": spec.criterion.horizon}
        print(json.dumps(head | found.json() | {"value_contexts": fewest.contexts}, allow_nan=False))
        return DONE
    print(_question(spec))
    length = "of any length" if found.length is None else f"of 0 to {found.length} pairs"
    print(f"  belief_contexts        {found.belief_contexts:>6}  distinct beliefs over histories {length}")
    print(f"  bisimulation_contexts  {found.bisimulation_contexts:>6}  the coarsest updatable lossless map")
    print(
        f"  value_contexts         {fewest.contexts:>6}  at most: found by merging while Vo stayed {fewest.value}"
    )
    return DONE


def _question(spec: Spec) -> str:
    horizon = "" if spec.criterion.horizon is None else f", horizon {spec.criterion.horizon}"
    return f"{spec.task_text}   discount {spec.criterion.gamma:g}{horizon}"


def _text(spec: Spec, losses: list[tuple[str, ContextLoss]]) -> str:
    """A table of all maps, then a witness for each that has one."""
    rows: list[list[Any]] = [["map", "contexts", "sufficient", "Vo(phi)", "loss", "V*(phi)", "I(b;c)", "of"]]
    words = {True: "yes", False: "no", None: "undecided"}
    for typed, loss in losses:
        found = loss.bits
        rows.append(
            [
                typed,
                loss.case.induced.num_contexts,
                words[loss.sufficiency.sufficient],
                loss.stateless,
                loss.loss,
                loss.recall,
                f"{found.mean('belief_context'):.4g}",
                f"{found.mean('belief_history'):.4g}",
            ]
        )
    lines = [_question(spec), f"V*(M_0) {losses[0][1].optimal}", table(rows)]
    for typed, loss in losses:
        verdict = loss.sufficiency
        if verdict.witness is not None:
            lines += ["", f"{typed} confuses, at the shortest:", verdict.witness.text()]
            if verdict.decisive is not None and verdict.decisive != verdict.witness:
                lines += [f"{typed} confuses, where the best action differs:", verdict.decisive.text()]
        elif verdict.sufficient is None:
            lines += ["", f"{typed}: undecided after histories of {verdict.depth} pairs: {verdict.reason}"]
    return "\n".join(lines)
