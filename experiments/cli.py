"""Commands `run`, `status`, `figures`, `reproduce` and `ablate`. Heavy imports stand inside the handlers.

A study's parameters become options of `run` after the study's name: `hpomdp run STUDY --points 5`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from experiments.cli_ablate import add_ablate
from experiments.cli_guard import add_plot

if TYPE_CHECKING:
    from experiments.runner import Run
    from experiments.study import Study

WIDTH_CHOICES = (3.41, 5.5)
FORMAT_CHOICES = ("pdf", "svg", "png")
INTERRUPTED = 130


class OptionError(ValueError):
    """A command line that names an unknown option or value."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{self.prog}: {message}")


def add_commands(subparsers: Any) -> None:
    """Add this package's commands; each sets `handler`, a function of its arguments giving the exit code."""
    run = subparsers.add_parser("run", help="run a study; resumes where it was stopped")
    _add_run_options(run)
    run.add_argument("study", metavar="STUDY", help="name of a shipped study, or the path of a study's file")
    run.add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="...", help="options, and the study's parameters"
    )
    run.set_defaults(handler=_run)

    status = subparsers.add_parser("status", help="count the done, missing and failed cells of a study")
    status.add_argument(
        "study", metavar="STUDY", nargs="?", help="a study's name or path; all shipped ones without it"
    )
    status.add_argument("--out", metavar="DIR", type=Path, help="folder of the run (default runs/STUDY)")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(handler=_status)

    figures = subparsers.add_parser("figures", help="draw a study's figure from its stored tables")
    figures.add_argument("study", metavar="STUDY", help="a study's name or path")
    figures.add_argument(
        "--width", type=float, choices=WIDTH_CHOICES, default=5.5, help="printed width in inches"
    )
    figures.add_argument("--format", choices=FORMAT_CHOICES, default="pdf")
    figures.add_argument(
        "--from",
        dest="source",
        metavar="DIR",
        type=Path,
        help="folder with tables/ (runs/STUDY, else results/STUDY)",
    )
    figures.add_argument(
        "--out", metavar="DIR", type=Path, help="where to write (default: figures/ in that folder)"
    )
    figures.set_defaults(handler=_figures)

    again = subparsers.add_parser(
        "reproduce", help="run every study afresh and compare with the committed results"
    )
    again.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("runs/reproduce"), help="deleted first"
    )
    again.add_argument("--results", metavar="DIR", type=Path, default=Path("results"))
    again.add_argument("--study", metavar="STUDY", action="append", help="only this study; may be repeated")
    again.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: all cores)")
    again.add_argument("--update", action="store_true", help="write the results instead of only comparing")
    again.set_defaults(handler=_reproduce)

    add_ablate(subparsers)
    add_plot(subparsers)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="small", help="small or full (default small)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder of the run (default runs/STUDY)")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds per cell (default: the study's)")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: all cores)")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    parser.add_argument("--fresh", action="store_true", help="forget the folder's records first")
    parser.add_argument("--retry", action="store_true", help="run failed cells again")
    parser.add_argument(
        "--mixed", action="store_true", help="accept records that other versions of the code computed"
    )


def _run(arguments: argparse.Namespace) -> int:
    from experiments.reproduce import draw, notes_of, tabulate
    from experiments.runner import Interrupted, run_study
    from experiments.study import load_study, parameters_of, study_name
    from experiments.tables import to_text

    study = load_study(arguments.study)
    options, words = _run_options(arguments, study)
    parameters = parse_parameters(study, parameters_of(study, options.preset), words)
    try:
        run = run_study(
            arguments.study,
            parameters,
            preset=options.preset,
            folder=options.out or Path("runs") / study_name(study),
            seeds=options.seeds,
            jobs=options.jobs,
            fresh=options.fresh,
            retry=options.retry,
            mixed=options.mixed,
            argv=sys.argv,
        )
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        return INTERRUPTED
    tables = tabulate(run)
    figures = draw(study, run.folder, run.folder / "figures", forms=("pdf",))
    failed = run.with_status("failed")
    if options.json:
        print(json.dumps(_summary(run, tables, figures), indent=1, allow_nan=False))
        return 1 if failed else 0
    print(f"{to_text(study.TABLES[0], tables[study.TABLES[0].name])}\n\n{study.headline(tables)}")
    for note in notes_of(run):
        print(note)
    if run.elsewhere:
        print(
            f"{run.elsewhere} cells have records of other versions of the code; --mixed accepts such records"
        )
    for record in failed:
        print(f"failed: {record.cell}: {(record.message or '').splitlines()[0]}")
    print(f"{len(run.records)} cells, {run.computed} computed now; tables and figure in {run.folder}")
    return 1 if failed else 0


def _run_options(arguments: argparse.Namespace, study: Study) -> tuple[argparse.Namespace, list[str]]:
    """The options before and after the study's name, and the words left for its parameters."""
    from experiments.study import study_name

    parser = _Parser(prog=f"hpomdp run {study_name(study)}", allow_abbrev=False, add_help=False)
    _add_run_options(parser)
    before = {
        name: value for name, value in vars(arguments).items() if name not in ("study", "rest", "handler")
    }
    return parser.parse_known_args(arguments.rest, argparse.Namespace(**before))


def parse_parameters(study: Study, preset: Any, words: list[str]) -> Any:
    """The preset with the parameters that the words name replaced: --points 5 --tasks tiger,tmaze."""
    from experiments.study import study_name

    parser = _Parser(
        prog=f"hpomdp run {study_name(study)}",
        allow_abbrev=False,
        description=study.QUESTION,
        epilog="Options of every run: --preset --out --seeds --jobs --json --fresh --retry --mixed",
    )
    hints = typing.get_type_hints(type(preset))
    for field in dataclasses.fields(preset):
        option = f"--{field.name.replace('_', '-')}"
        default = getattr(preset, field.name)
        if hints[field.name] is bool:
            parser.add_argument(
                option, action=argparse.BooleanOptionalAction, default=default, dest=field.name
            )
        else:
            reader = _reader(hints[field.name])
            parser.add_argument(
                option, type=reader, default=default, dest=field.name, help=f"default {default}"
            )
    try:
        return dataclasses.replace(preset, **vars(parser.parse_args(words)))
    except (TypeError, ValueError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{parser.prog}: {error}") from error


def _reader(hint: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]

        def read_list(text: str) -> tuple[Any, ...]:
            return tuple(item(word) for word in text.split(",") if word)

        return read_list
    return hint


def _summary(run: Run, tables: dict[str, Any], figures: list[Path]) -> dict[str, Any]:
    from experiments.reproduce import notes_of
    from experiments.study import study_name

    return {
        "study": study_name(run.study),
        "run_id": run.manifest["run_id"],
        "parameters": run.manifest["parameters"],
        "records": run.manifest["records"],
        "computed": run.computed,
        "folder": str(run.folder),
        "figures": [str(path) for path in figures],
        "notes": notes_of(run),
        "failed": [{"cell": record.cell, "message": record.message} for record in run.with_status("failed")],
        # pandas writes an undefined entry as null, which json.dumps of a float nan would refuse.
        "tables": {
            name: json.loads(frame.to_json(orient="records", double_precision=15))
            for name, frame in tables.items()
        },
    }


def _status(arguments: argparse.Namespace) -> int:
    from experiments.status import status_of, status_text
    from experiments.study import shipped_studies

    names = [arguments.study] if arguments.study else shipped_studies()
    found = [status_of(name, arguments.out) for name in names]
    if arguments.json:
        print(json.dumps([dataclasses.asdict(item) for item in found], indent=1))
    else:
        print(status_text(found))
    return 0


def _figures(arguments: argparse.Namespace) -> int:
    from experiments.reproduce import draw
    from experiments.study import StudyError, load_study, study_name

    study = load_study(arguments.study)
    places = [Path("runs") / study_name(study), Path("results") / study_name(study)]
    candidates = [arguments.source] if arguments.source else places
    folder = next((place for place in candidates if (place / "tables").is_dir()), None)
    if folder is None:
        raise StudyError(
            f"no tables in {' or '.join(map(str, candidates))}; hpomdp run {arguments.study} makes them"
        )
    target = arguments.out or folder / "figures"
    for path in draw(study, folder, target, forms=(arguments.format,), width=arguments.width):
        print(path)
    return 0


def _reproduce(arguments: argparse.Namespace) -> int:
    from experiments.reproduce import report, reproduce
    from experiments.runner import Interrupted
    from experiments.study import shipped_studies

    try:
        done = reproduce(
            arguments.study or shipped_studies(),
            out=arguments.out,
            results=arguments.results,
            jobs=arguments.jobs,
            argv=sys.argv,
            update=arguments.update,
        )
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        return INTERRUPTED
    return report(done, arguments.results)
