"""Commands `solve`, `feedback`, `check` and `simulate`. Heavy imports stand inside the handlers.

MODEL is the path of a .pomdp file or `library:NAME`; a library task without a discount is taken over its natural
horizon. A human sees a table and, on a terminal, a progress bar on standard error; `--json` prints one object. Exit
codes: 0 done, 1 a failed check, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp.cli_simulate import add_simulate

if TYPE_CHECKING:
    from pomdp.bounds import Feedback, Solution
    from pomdp.criterion import Criterion
    from pomdp.interval import Interval
    from pomdp.model import POMDP

DONE, FAILED_CHECK, INTERRUPTED = 0, 1, 130
LIBRARY = "library:"


def add_commands(subparsers: Any) -> None:
    """Add this package's commands; each sets `handler`, a function of its arguments giving the exit code."""
    solve = subparsers.add_parser("solve", help="bounds on the best value V* of a model, with a certificate")
    _add_question(solve)
    solve.set_defaults(handler=_solve)

    feedback = subparsers.add_parser("feedback", help="the value of feedback V_f = V* - W of a model")
    _add_question(feedback)
    feedback.add_argument(
        "--branch-on",
        metavar="O1,O2",
        help="also the best workflow that may branch at these observations only",
    )
    feedback.set_defaults(handler=_feedback)

    check = subparsers.add_parser(
        "check", help="check a certificate exactly: exit 0 when it holds, 1 when not"
    )
    check.add_argument("certificate", metavar="CERTIFICATE", type=Path, help="file that --certificate wrote")
    check.add_argument("model", metavar="MODEL", help="path of a .pomdp file, or library:NAME")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(handler=_check)

    add_simulate(subparsers)


def _add_question(parser: argparse.ArgumentParser) -> None:
    """Options that `solve` and `feedback` share."""
    parser.add_argument("model", metavar="MODEL", help="path of a .pomdp file, or library:NAME")
    parser.add_argument("--discount", metavar="G", help="discount from 0 to 1; the model's own by default")
    parser.add_argument("--horizon", metavar="N", type=int, help="count N steps only; keeps the discount")
    parser.add_argument(
        "--gap", metavar="X", type=nonnegative, default=1e-3, help="stop at this width (1e-3)"
    )
    parser.add_argument(
        "--time",
        metavar="S",
        type=positive,
        default=60.0,
        help="search for S s at most (60); certifying adds to it",
    )
    parser.add_argument("--certificate", metavar="FILE", type=Path, help="write what proves the bounds")
    parser.add_argument("--no-cache", action="store_true", help="solve even what was solved before")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def load_model(text: str) -> POMDP:
    """The model that MODEL names: a .pomdp file, or a task of the library. ModelError or OSError otherwise."""
    if text.startswith(LIBRARY):
        from pomdp.library import task

        return task(text[len(LIBRARY) :]).model
    from pomdp.cassandra import read

    return read(Path(text))


def natural_horizon(text: str, model: POMDP) -> int | None:
    """The horizon that a library task has where its model has no discount; None for every other model."""
    if not text.startswith(LIBRARY) or model.discount is not None:
        return None
    from pomdp.library import task

    return task(text[len(LIBRARY) :]).horizon


def _solve(args: argparse.Namespace) -> int:
    from pomdp.bounds import solve

    model, criterion = _question(args)
    with _progress(args, "V*", args.time) as report:
        found = solve(model, criterion, **_effort(args, report))
    written = {"V*": _write_certificate(found, args.certificate)}
    result = _statement(args, criterion) | {
        "optimal": found.interval.json(),
        "seconds": found.seconds,
        "certify_seconds": found.certify_seconds,
        "ended": found.ended,
        "certified": found.certified,
        "cached": found.cached,
    }
    rows = [("V*, best closed loop", found.interval)]
    return _print(args, result, rows, [found], written)


def _feedback(args: argparse.Namespace) -> int:
    from pomdp.bounds import feedback
    from pomdp.bounds.workflow import branching

    model, criterion = _question(args)
    names = _names(args.branch_on)
    branching(model, names or ())  # names are refused before any work is done
    with _progress(args, "W, V*", args.time) as report:
        found = feedback(model, criterion, **_effort(args, report))
    drawn = None if names is None else _workflow(args, model, criterion, names, found)
    written = {
        "V*": _write_certificate(found.closed, args.certificate),
        "W": _write_certificate(found.open, args.certificate and _beside(args.certificate)),
    }
    plan = None
    if found.open.certificate is not None:
        prefix, cycle = found.open.certificate.actions()
        plan = {"prefix": [model.actions[a] for a in prefix], "cycle": [model.actions[a] for a in cycle]}
    result = _statement(args, criterion) | {
        "optimal": found.optimal.json(),
        "open_loop": found.open_loop.json(),
        "value_of_feedback": found.value_of_feedback.json(),
        "seconds": found.seconds,
        "certify_seconds": found.open.certify_seconds + found.closed.certify_seconds,
        "ended": {"optimal": found.closed.ended, "open_loop": found.open.ended},
        "certified": found.value_of_feedback.certified,
        "cached": found.closed.cached and found.open.cached,
        "plan": plan,
    }
    rows = [
        ("V*, best closed loop", found.optimal),
        ("W, best open loop", found.open_loop),
        ("V_f = V* - W", found.value_of_feedback),
    ]
    runs = [found.open, found.closed]
    if drawn is not None:
        workflow = drawn.interval.between(found.open_loop, found.optimal)
        result["workflow"] = workflow.json()
        result["ended"]["workflow"] = drawn.ended
        rows.insert(2, (f"W_N, on {', '.join(names or ()) or 'nothing'}", workflow))
        runs.append(drawn)
    return _print(args, result, rows, runs, written)


def _names(text: str | None) -> list[str] | None:
    """The names in `O1,O2`; None where the option was not given."""
    return None if text is None else [name for name in map(str.strip, text.split(",")) if name]


def _workflow(
    args: argparse.Namespace, model: POMDP, criterion: Criterion, names: list[str], found: Feedback
) -> Solution:
    """Bounds on W_N; short where Ctrl-C ended the searches before it."""
    from pomdp.bounds.feedback import INTERRUPTED_SECONDS
    from pomdp.bounds.workflow import solve_workflow

    with _progress(args, "W_N", args.time) as report:
        effort = _effort(args, report)
        if "interrupt" in (found.open.ended, found.closed.ended):
            effort["time_limit"] = INTERRUPTED_SECONDS
        return solve_workflow(model, criterion, names, **effort)


def _check(args: argparse.Namespace) -> int:
    from pomdp.certificate import OPTIMAL, read
    from pomdp.check import check
    from pomdp.interval import Interval

    model = load_model(args.model)
    certificate = read(args.certificate)
    verdict = check(certificate, model)
    quantity = "V*" if certificate.quantity == OPTIMAL else "W"
    discount = model.exact.discount if certificate.discount is None else certificate.discount
    claim = (
        Interval.of(certificate.lower, certificate.upper) if certificate.lower <= certificate.upper else None
    )
    if args.json:
        shown = {
            "valid": verdict.valid,
            "fault": verdict.fault,
            "model": args.model,
            "quantity": certificate.quantity,
            "discount": None if discount is None else float(discount),
            "horizon": certificate.horizon,
            "claim": None if claim is None else claim.json(),
        }
        print(json.dumps(shown, allow_nan=False))
    elif verdict.valid:
        at = f"discount {discount}" + (
            "" if certificate.horizon is None else f", horizon {certificate.horizon}"
        )
        print(f"valid: {quantity} of {args.model} at {at} is in {claim}")
    else:
        print(f"not valid for {args.model}: {verdict.fault}")
    return DONE if verdict.valid else FAILED_CHECK


def _question(args: argparse.Namespace) -> tuple[POMDP, Criterion]:
    """Model and criterion, and a place for the certificate, all refused before any work is done."""
    from pomdp.criterion import Criterion
    from pomdp.model import ModelError

    for path in (args.certificate, _beside(args.certificate)) if args.certificate else ():
        if path.is_dir() or not path.parent.is_dir():
            raise ModelError(f"--certificate {path}: not a file in a folder that exists")
        if path.resolve() == Path(args.model).resolve():
            raise ModelError(f"--certificate {path} is the model itself; name another file")
    model = load_model(args.model)
    horizon = args.horizon
    if horizon is None and args.discount is None:
        horizon = natural_horizon(args.model, model)
    return model, Criterion.of(model, args.discount, horizon)


def _effort(args: argparse.Namespace, report: _Bar | None) -> dict[str, Any]:
    """How far and how long to search, and who hears of it."""
    return {
        "gap": args.gap,
        "time_limit": args.time,
        "cache": not args.no_cache,
        "progress": report.bounds if report else None,
        "announce": report.step if report else None,
    }


def _statement(args: argparse.Namespace, criterion: Criterion) -> dict[str, Any]:
    return {"model": args.model, "discount": criterion.gamma, "horizon": criterion.horizon}


def _beside(path: Path) -> Path:
    """Where the certificate of W goes: `x.json` -> `x.open-loop.json`."""
    return path.parent / f"{path.stem}.open-loop{path.suffix}"


def _write_certificate(found: Solution, path: Path | None) -> Path | None:
    """Write the certificate where one is asked for and was made; returns where it was written."""
    if path is None or found.certificate is None:
        return None
    from pomdp.certificate import write

    write(found.certificate, path)
    return path


def _print(
    args: argparse.Namespace,
    result: dict[str, Any],
    rows: list[tuple[str, Interval]],
    runs: list[Solution],
    files: dict[str, Path | None],
) -> int:
    """One JSON object, or a table; a search that Ctrl-C ended still prints its bounds."""
    interrupted = any(run.ended == "interrupt" for run in runs)
    if args.json:
        print(json.dumps(result, allow_nan=False))
        return INTERRUPTED if interrupted else DONE
    horizon = "" if result["horizon"] is None else f", horizon {result['horizon']}"
    print(f"{args.model}   discount {result['discount']:g}{horizon}")
    widest = max(22, *(len(label) for label, _ in rows))
    for label, interval in rows:
        print(f"  {label:<{widest}} {str(interval):<34} width {interval.width:.2g}")
    state = "certified" if all(run.certified for run in runs) else "not certified (estimated rounding margin)"
    why = {
        "gap": "gap reached",
        "precision": "as narrow as doubles tell",
        "time": "time is over",
        "memory": "memory limit",
        "interrupt": "interrupted",
    }
    ended = ", ".join(dict.fromkeys(why[run.ended] for run in runs))
    cached = ", solved before" if all(run.cached for run in runs) else ""
    search, proof = sum(run.seconds for run in runs), sum(run.certify_seconds for run in runs)
    print(f"  {state}; {ended}; search {search:.2f} s, certificate {proof:.2f} s{cached}")
    for name, path in files.items():
        if path is not None:
            print(f"  certificate of {name}: {path}")
    if args.certificate is not None and None in files.values():
        print("  no certificate was written: it was interrupted")
    return INTERRUPTED if interrupted else DONE


class _Bar:
    """A bar on standard error that shows the step, the bounds and the gap."""

    def __init__(self, bar: Any, label: str) -> None:
        self._bar, self._label = bar, label

    def bounds(self, elapsed: float, lower: float, upper: float) -> None:
        """Show the search's bounds."""
        self._bar.n = min(elapsed, self._bar.total)
        self._bar.set_postfix_str(f"[{lower:.7g}, {upper:.7g}] gap {upper - lower:.2g}", refresh=False)
        self._bar.update(0)

    def step(self, name: str) -> None:
        """Show what begins."""
        notes = {
            "compiling": " (once an installation)",
            "certifying": " (Ctrl-C: bounds without certificate)",
        }
        self._bar.set_description_str(f"{self._label} {name}{notes.get(name, '')}", refresh=True)


@contextmanager
def _progress(args: argparse.Namespace, label: str, seconds: float) -> Iterator[_Bar | None]:
    """The bar, on a terminal alone."""
    if args.json or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    form = "{desc} {bar} {n:.0f}/{total:.0f} s{postfix}"
    with tqdm(total=seconds, bar_format=form, leave=False, file=sys.stderr, dynamic_ncols=True) as bar:
        yield _Bar(bar, label)


def positive(text: str) -> float:
    """A finite number above 0, or the parser's error."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def nonnegative(text: str) -> float:
    """A finite number of at least 0, or the parser's error."""
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number >= 0")
    return value


def _number(text: str) -> float:
    """The number, or nan, which is in no range."""
    try:
        return float(text)
    except ValueError:
        return math.nan
