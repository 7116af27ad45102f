"""The command `ablate`: a harness with its parts switched, arm by arm; heavy imports stand inside the handler."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from experiments.ablation import Parameters
    from experiments.ablation_design import Plan
    from experiments.runner import Run

DONE, INTERRUPTED = 0, 130
DESIGNS = ("factorial", "one-at-a-time", "leave-one-out")


def add_ablate(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "ablate",
        help="what each part of a harness is worth: arms, contrasts, and a check that each was applied",
        description="Compare a harness with itself, parts switched. J is exact where the induced POMDP can be written "
        "down, else sampled with the same draws in every arm. An arm in which nothing that the model saw, could do or "
        "did was changed is reported as not applied, never as no effect. Resumes where it was stopped.",
        epilog="The baseline is the spec itself where its own settings are among the levels, else the first level of "
        "each factor. `none` leaves a constructor out. Levels that hold commas are parted by semicolons.",
    )
    add = parser.add_argument
    add("spec", metavar="SPEC", help="path of a SPEC.toml")
    add(
        "--vary",
        metavar="NAME=LEVELS",
        action="append",
        default=[],
        help="context=last:1,full:6 or PART.CONSTRUCTOR=none,ARGS (control.stall=none,3-4) or model.FIELD=A,B",
    )
    add("--design", choices=DESIGNS, help="factorial where something is varied")
    add("--seeds", metavar="N", type=int, default=16, help="seeds of an arm that is sampled (16)")
    add("--episodes", metavar="N", type=int, default=1000, help="episodes of a seed (1000)")
    add(
        "--max-states",
        metavar="N",
        type=int,
        default=50_000,
        help="sample an arm whose induced POMDP has more states (50000)",
    )
    add("--time", metavar="S", type=float, default=10.0, help="search for S s at most for each bound (10)")
    add("--out", metavar="DIR", type=Path, help="folder of the run (default runs/ablate-DIGEST)")
    add("--jobs", type=int, metavar="N", help="worker processes (default: all cores)")
    add("--fresh", action="store_true", help="forget the folder's records first")
    add("--retry", action="store_true", help="run failed arms again")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=run)


def parameters_of(args: argparse.Namespace) -> Parameters:
    """The study's parameters that the command line asks for."""
    from experiments.ablation import Parameters
    from experiments.ablation_design import document
    from pomdp.model import ModelError

    blank = next((text for text in args.vary if len(text.split()) != 1), None)
    if blank is not None:
        raise ModelError(f"--vary {blank!r} holds a space; write it as in --vary context=last:1,last:3")
    design = args.design or "factorial"
    return Parameters(
        spec=json.dumps(document(Path(args.spec))),
        vary=" ".join(args.vary),
        design=design,
        repeats=args.seeds,
        episodes=args.episodes,
        max_states=args.max_states,
        seconds=args.time,
    )


def run(args: argparse.Namespace) -> int:
    """Plan, run what is missing, print; 1 where an arm failed, 130 after Ctrl-C."""
    parameters = parameters_of(args)
    planned = parameters.plan()

    from experiments import ablation
    from experiments.records import digest
    from experiments.reproduce import draw, tabulate
    from experiments.runner import Interrupted, frame_of, run_study

    question = {"base": planned.base, "design": planned.design, "arms": [dict(arm) for arm in planned.arms]}
    folder = args.out or Path("runs") / f"ablate-{digest(question)[:10]}"
    try:
        done = run_study(
            "ablation", parameters, preset="ablate", folder=folder, jobs=args.jobs, fresh=args.fresh,
            retry=args.retry, argv=sys.argv,
        )  # fmt: skip
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        return INTERRUPTED
    frame, tables = frame_of(done), tabulate(done)
    same = ablation.equals(frame)
    figures = draw(done.study, folder, folder / "figures", forms=("pdf",))
    if args.json:
        found = _json(done, planned, tables) | {
            "arms": ablation.details(frame),
            "same_runs": same,
            "figures": [str(path) for path in figures],
        }
        print(json.dumps(found, allow_nan=False))
    else:
        print(_text(done, planned, tables, same))
    return 1 if done.with_status("failed") else DONE


def _json(done: Run, planned: Plan, tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """All that was found, in plain values."""
    from experiments.ablation_design import label, spec_of

    return {
        "spec": spec_of(planned.base).json(),
        "design": planned.design,
        "baseline": {
            "is_the_spec": planned.own,
            "settings": {one.name: one.baseline for one in planned.factors},
        },
        "tables": {
            name: json.loads(frame.to_json(orient="records", double_precision=15))
            for name, frame in tables.items()
        },
        "failed": [
            {"arm": label(record.cell["arm"]), "message": _first(record.message)}
            for record in done.with_status("failed")
        ],
        "notes": list(planned.notes),
        "computed": done.computed,
        "folder": str(done.folder),
    }


def _text(done: Run, planned: Plan, tables: dict[str, pd.DataFrame], same: list[str]) -> str:
    """The table of arms, in a factorial that of effects, and what to know beside them."""
    from experiments.ablation_design import FACTORIAL, label, spec_of
    from experiments.tables import to_text

    spec = spec_of(planned.base)
    horizon = "" if spec.criterion.horizon is None else f", horizon {spec.criterion.horizon}"
    lines = [
        f"{spec.task_text}   discount {spec.criterion.gamma:g}{horizon}   model {spec.model.text}   {planned.design}",
        "",
        to_text(done.study.TABLES[0], tables["arms"]),
        "",
    ]
    sampled = "sampled" in set(tables["arms"]["method"])
    if planned.design == FACTORIAL or sampled:
        lines += [to_text(done.study.TABLES[1], tables["contrasts"]), ""]
    lines += [done.study.headline(tables), *same, *planned.notes]
    lines.append("exact: no error bar" + ("; sampled: the same draws in every arm" if sampled else ""))
    for record in done.with_status("failed"):
        lines.append(f"failed: {label(record.cell['arm'])}: {_first(record.message)}")
    lines.append(
        f"{len(done.records)} arms, {done.computed} computed now; tables and figure in {done.folder}"
    )
    return "\n".join(lines)


def _first(message: str | None) -> str:
    return (message or "no message").splitlines()[0]
