"""The command `conform`: one policy, one stream of random numbers, three engines; heavy imports inside the handler."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harnesses.cli_effort import table

if TYPE_CHECKING:
    from harnesses.conformance.compare import Compared, Conformance
    from harnesses.conformance.episode import Engine, Episode
    from harnesses.spec import Spec

DONE, FINDING = 0, 1
EPISODES = {"cells": 50, "nightly": 1000}
SQLITE_CELLS = 5  # of a preset: SQLite is the same graph with a slower saver
STEPS = 10  # of a run where neither the task nor the spec has a horizon


def add_conform(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "conform",
        help="the same policy in the tabular simulator, the minimal harness and LangGraph, compared step by step",
        description="Runs the same episodes in the tabular simulator, in the minimal harness and in a LangGraph "
        "graph, and counts differences in action, observation, context, removals, reward and reason: zero where the "
        "running agent is the formal one.",
    )
    parser.add_argument("spec", metavar="SPEC", nargs="?", help="a SPEC.toml: task, harness and model")
    parser.add_argument("--task", metavar="MODEL", help="instead of a spec: library:NAME or a .pomdp file")
    parser.add_argument("--map", metavar="NAME:ARGS", help="with --task: a context map, by default last:2")
    parser.add_argument(
        "--policy",
        metavar="KIND",
        help="random, naive, bayes or optimal, with a temperature as in naive:0.5; the spec's own, or random",
    )
    parser.add_argument(
        "--preset",
        choices=sorted(EPISODES),
        help="instead of a spec: cells, a pairwise cover of tasks, maps and controls; nightly, all of them",
    )
    parser.add_argument("--steps", metavar="N", type=int, help="model calls of a run at most")
    parser.add_argument("--episodes", metavar="N", type=int, help="episodes of each cell, by default 100")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all draws, by default 0")
    parser.add_argument("--sqlite", action="store_true", help="LangGraph also with its SQLite saver")
    parser.add_argument(
        "--episode",
        metavar="E",
        type=int,
        help="one episode by its number, step by step, with its checkpoints",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Compare, print, and exit with 1 where anything differs."""
    from harnesses.conformance.compare import Conformance

    _check(args)
    if args.preset is not None:
        return _print(args, list(_preset(args)))
    spec = _spec(args)
    ready = Conformance.of(spec, args.steps or spec.criterion.horizon or STEPS)
    if args.episode is not None:
        return _one(args, ready)
    with _bar(args, len(_engines(args)) * _episodes(args), 1) as bar:
        found = ready.compare(_engines(args), range(_episodes(args)), args.seed, bar.update)
    return _print(args, [found])


def _check(args: argparse.Namespace) -> None:
    """AgentError for words that contradict each other, before anything runs."""
    from harnesses.runtime.records import AgentError
    from pomdp.rng import as_word

    given = [args.spec is not None, args.task is not None, args.preset is not None]
    if sum(given) != 1:
        raise AgentError("name one of a SPEC.toml, --task and --preset, such as --task library:flip:4")
    if args.task is None and args.map is not None:
        raise AgentError("--map is for --task; a spec has its own context map")
    if args.preset is not None and (args.policy or args.steps or args.episode is not None):
        raise AgentError(
            "a preset has its own policies and horizons; leave --policy, --steps and --episode out"
        )
    for name in ("episodes", "steps"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise AgentError(f"--{name} {getattr(args, name)} is below 1; give one such as --{name} 20")
    as_word(args.seed, "--seed")
    as_word(args.episode or 0, "--episode")


def _spec(args: argparse.Namespace) -> Spec:
    from harnesses.runtime.records import AgentError
    from harnesses.spec import is_spec, parse_spec, read_spec

    if args.spec is not None and not is_spec(args.spec):
        raise AgentError(f"{args.spec} is no SPEC.toml; for a task write --task {args.spec}")
    if args.spec is not None:
        spec = read_spec(args.spec)
        return spec if args.policy is None else spec.with_model(args.policy)
    return parse_spec({"task": args.task, "context": args.map or "last:2", "model": args.policy or "random"})


def _episodes(args: argparse.Namespace) -> int:
    return args.episodes or EPISODES.get(args.preset, 100)


def _engines(args: argparse.Namespace, sqlite: bool = False) -> list[Engine]:
    return ["runtime", "langgraph", "sqlite"] if args.sqlite or sqlite else ["runtime", "langgraph"]


def _preset(args: argparse.Namespace) -> Iterator[Compared]:
    """The cells of a preset, one after the other."""
    from harnesses.conformance.cells import cell, cover, every_cell
    from harnesses.conformance.compare import Conformance

    rows = cover() if args.preset == "cells" else every_cell()
    spread = {i * len(rows) // SQLITE_CELLS for i in range(SQLITE_CELLS)}
    engines = [_engines(args, i in spread) for i in range(len(rows))]
    with _bar(args, sum(map(len, engines)) * _episodes(args), len(rows)) as bar:
        for row, names in zip(rows, engines, strict=True):
            bar.set_description(" ".join(row))
            yield Conformance.of(cell(*row)).compare(names, range(_episodes(args)), args.seed, bar.update)


def _bar(args: argparse.Namespace, total: int, cells: int) -> Any:
    from tqdm import tqdm

    what = "conform" if cells == 1 else f"conform, {cells} cells"
    return tqdm(total=total, desc=what, unit="run", file=sys.stderr, disable=True if args.json else None)


def _print(args: argparse.Namespace, found: list[Compared]) -> int:
    """All cells as JSON or as a table, and the first difference."""
    from harnesses.conformance.compare import MET

    differences = sum(cell.differences for cell in found)
    if args.json:
        head = {
            "episodes": sum(cell.episodes * len(cell.engines) for cell in found),
            "differences": differences,
        }
        met = {name: sum(cell.met[name] for cell in found) for name in MET}
        cells = [cell.json() for cell in found]
        print(json.dumps({**head, "seed": args.seed, "met": met, "cells": cells}, allow_nan=False))
        return FINDING if differences else DONE
    rows: list[list[Any]] = [["task", "context", "control", "model", "runs", "steps", "differences"]]
    for cell in found:
        harness = cell.spec.harness
        control = " ".join(part.text for part in harness.parts()) or "-"
        runs = cell.episodes * len(cell.engines)
        words = [cell.spec.task_text, harness.context.name, control, cell.spec.model.text]
        rows.append([*words, runs, cell.steps, cell.differences])
    print(table(rows))
    counts = [f"{name} {sum(cell.met[name] for cell in found)}" for name in MET]
    print(f"met in the reference: {', '.join(counts)}")
    engines = list(dict.fromkeys(name for cell in found for name in cell.engines))
    print(
        f"{differences} differences between the tabular simulator and {', '.join(engines)}, seed {args.seed}"
    )
    for cell in found:
        if cell.first is not None:
            print(f"first: {cell.first.text}")
            break
    return FINDING if differences else DONE


def _one(args: argparse.Namespace, ready: Conformance) -> int:
    """One episode in every engine."""
    from harnesses.conformance.compare import differences
    from harnesses.conformance.episode import checkpoints, engine, running

    number = args.episode
    expected = ready.reference([number], args.seed)[number]
    apart = []
    for name in _engines(args)[:1]:
        apart += differences(name, number, expected, running(ready.served, ready.policy(args.seed, number)))
    with engine("langgraph") as saver:
        found = running(ready.served, ready.policy(args.seed, number), saver)
        apart += differences("langgraph", number, expected, found)
        moments = checkpoints(ready.served, ready.policy(args.seed, number), saver)
    if args.json:
        steps = [
            {**vars(step), "dropped": [gone._asdict() for gone in step.dropped]} for step in expected.steps
        ]
        shown = {"episode": number, "seed": args.seed, "steps": steps, "reason": expected.reason}
        told = [vars(difference) for difference in apart]
        print(json.dumps({**shown, "differences": told, "checkpoints": moments}, allow_nan=False))
        return FINDING if apart else DONE
    print(_steps(expected))
    print(f"end: {expected.reason}; checkpoints of LangGraph, oldest first:")
    print(table([["super-step", "after", "messages", "newest"], *([*moment.values()] for moment in moments)]))
    print(f"{len(apart)} differences in runtime and langgraph")
    for difference in apart[:1]:
        print(f"first: {difference.text}")
    return FINDING if apart else DONE


def _steps(episode: Episode) -> str:
    rows: list[list[Any]] = [["step", "context", "tokens", "action", "observation", "reward"]]
    for t, step in enumerate(episode.steps):
        rows.append([t, step.context, step.tokens, step.action, step.observation, f"{step.reward:.6g}"])
    return table(rows)
