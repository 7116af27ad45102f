"""The commands `guard select`, `guard plan` and `guard monitor`. Heavy imports stand inside the handlers."""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnesses.guard.monitor import Monitor, State
    from harnesses.guard.scores import Place, Scores
    from harnesses.guard.selection import Selection

DONE, FINDING = 0, 1
STANDARD_INPUT = "-"
_INPUT = "standard input"


def add_select(commands: Any) -> None:
    """Add `select`."""
    parser = commands.add_parser(
        "select",
        help="the threshold that keeps the unsafe-action rate, or the share of bad sends, below alpha",
        description="From labelled reports, calibrated or not: the least tau_act under which the unsafe-action rate "
        "(--uar) or the share of disallowed among sent (--share) is at most alpha with confidence 1 - delta.",
    )
    parser.add_argument("scores", metavar="SCORES", type=Path, help="a CSV or Parquet file, columns p and y")
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--uar", metavar="ALPHA", help="bound on the rate among disallowed items (T9)")
    goal.add_argument("--share", metavar="ALPHA", help="bound on the rate among sent items (Learn-then-Test)")
    parser.add_argument(
        "--delta", metavar="D", default="0.05", help="chance that it fails, at most (default 0.05)"
    )
    parser.add_argument(
        "--grid", metavar="T1,T2", help="with --share: thresholds fixed before seeing the data"
    )
    parser.add_argument(
        "--method", help="with --share: fallback (default), fixed-sequence, holm or bonferroni"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_select)


def _select(args: argparse.Namespace) -> int:
    from harnesses.guard.region import GuardError
    from harnesses.guard.scores import read_scores

    if args.share is not None:
        return _select_share(args)
    for name in ("grid", "method"):
        if getattr(args, name) is not None:
            raise GuardError(f"--{name} goes with --share; the rule for --uar needs none")
    from harnesses.guard.selection import conformal_threshold, naive_threshold, pac_threshold

    data = read_scores(args.scores)
    found = pac_threshold(data.p, data.y, args.uar, args.delta)
    others = [conformal_threshold(data.p, data.y, args.uar), naive_threshold(data.p, data.y, args.uar)]
    if args.json:
        compared = {other.rule: other.json() for other in others}
        print(json.dumps(found.json() | {"compared": compared}, allow_nan=False))
        return DONE
    print(f"{args.scores}: {data.size} items, {found.n} disallowed")
    promise = f"UAR <= {float(found.alpha):g} with confidence {1 - float(found.delta or 0):g}"
    print(_selected("pac", found, promise))
    print(_selected("conformal", others[0], f"UAR <= {float(found.alpha):g} on average only"))
    print(_selected("naive", others[1], "no promise"))
    return DONE


def _selected(name: str, found: Selection, promise: str) -> str:
    if found.tau_act is None:
        return f"{name:10} never act: {found.why}"
    counts = f"{found.k} of {found.n} may pass; sends {found.sent}, of which {found.share.numerator} bad"
    return f"{name:10} tau_act {found.tau_act!r:20} {promise}: {counts}"


def _select_share(args: argparse.Namespace) -> int:
    from harnesses.guard.learn_then_test import GRID, METHODS, share_threshold
    from harnesses.guard.scores import read_scores

    data = read_scores(args.scores)
    grid = GRID if args.grid is None else [word for word in args.grid.split(",") if word.strip()]
    found = share_threshold(data.p, data.y, args.share, args.delta, grid, args.method or METHODS[0])
    if args.json:
        print(json.dumps(found.json(), allow_nan=False))
        return DONE
    print(f"{args.scores}: {data.size} items; {found.rule}")
    if found.tau_act is None:
        print(f"never act: {found.why}")
    else:
        promise = f"share <= {float(found.alpha):g} with confidence {1 - float(found.delta):g}"
        print(
            f"tau_act {found.tau_act!r}  {promise}; sends {found.sent}, of which {found.share.numerator} bad"
        )
    print(f"{'tau':>10}  {'sent':>7}  {'bad':>6}  {'p-value':>9}  {'tested at':>9}")
    for test in found.tests:
        value = "none" if test.p_value is None else f"{test.p_value:.3g}"
        at = "not" if test.spent is None else f"{float(test.spent):.3g}"
        mark = "  certified" if test.rejected else ""
        print(f"{float(test.tau):>10g}  {test.sent:>7}  {test.bad:>6}  {value:>9}  {at:>9}{mark}")
    return DONE


def add_plan(commands: Any) -> None:
    """Add `plan`."""
    parser = commands.add_parser(
        "plan",
        help="how many labelled items it takes to certify an unsafe-action rate",
        description="Sample sizes, in disallowed items, of the exact one-sided test and of `guard select --uar`.",
    )
    parser.add_argument("--uar", metavar="ALPHA", required=True, help="rate to certify, such as .05")
    parser.add_argument("--delta", metavar="D", default="0.05", help="chance of a false certificate (0.05)")
    parser.add_argument("--power", metavar="P", default="0.9", help="chance to get the certificate (0.9)")
    parser.add_argument("--true-uar", metavar="U", help="the guard's true rate (default: half of ALPHA)")
    parser.add_argument("--pi0", metavar="S", help="share of disallowed items: also how many to label in all")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_plan)


def _plan(args: argparse.Namespace) -> int:
    from harnesses.guard.planning import plan

    found = plan(args.uar, args.delta, args.power, args.true_uar, args.pi0)
    print(json.dumps(found.json(), allow_nan=False) if args.json else found.text())
    return DONE


def add_monitor(commands: Any) -> None:
    """Add `monitor`."""
    parser = commands.add_parser(
        "monitor",
        help="watches a stream of labelled sends; an alarm is false with probability delta at most, ever",
        description="Evidence against the promise that a send with report p is disallowed with probability 1 - p. "
        "Exit code 1 on an alarm.",
    )
    parser.add_argument(
        "stream", metavar="STREAM", help="CSV or Parquet, columns p and y; - reads lines as they come"
    )
    parser.add_argument("--delta", metavar="D", default="0.05", help="chance of a false alarm, ever (0.05)")
    parser.add_argument(
        "--against",
        metavar="RATE",
        default="report",
        help="a promised rate of bad sends instead, such as 1/32",
    )
    parser.add_argument("--tau-act", metavar="X", help="pass over items with p below it, which were not sent")
    parser.add_argument(
        "--state", metavar="FILE", type=Path, help="go on from this file, and keep it up to date"
    )
    parser.add_argument(
        "--later", action="store_true", help="STREAM holds later items only, not the log from its beginning"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_monitor)


def _monitor(args: argparse.Namespace) -> int:
    from harnesses.guard.monitor import REPORT, Monitor
    from harnesses.guard.region import probability

    monitor = Monitor(args.delta, REPORT if args.against == REPORT else args.against)
    tau = None if args.tau_act is None else probability(args.tau_act, "--tau-act")
    log = StreamLog.read(args.state, monitor)
    live = args.stream == STANDARD_INPUT
    state = _live(args, monitor, log, tau) if live else _stored(args, monitor, log, tau)
    _print_monitor(args, monitor, state)
    return DONE if state.alarm is None else FINDING


class StreamLog:
    """A state with how much of which stream it has seen, so that no item counts twice."""

    def __init__(self, state: State, rows: int, digest: str) -> None:
        self.state, self.rows, self.digest = state, rows, digest

    @classmethod
    def read(cls, path: Path | None, monitor: Monitor) -> StreamLog:
        """From a file, or afresh where there is none. Raises GuardError for another monitor's, or no, state."""
        from harnesses.guard.monitor import State
        from harnesses.guard.region import GuardError

        if path is None or not path.exists():
            return cls(monitor.start(), 0, _digest())
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.pop("seal") != _seal(data):
                raise GuardError("changed since it was written")
            found = cls(State.from_json(data["state"]), int(data["rows"]), str(data["digest"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise GuardError(
                f"{path} is no state of a monitor, or a damaged one; name a new file, or one that --state wrote"
            ) from error
        if found.state.monitor != monitor.name:
            raise GuardError(
                f"{path} is of a monitor with {found.state.monitor}; this one has {monitor.name}"
            )
        return found

    def write(self, path: Path | None) -> None:
        """To the file, whole or not at all; nowhere without one."""
        if path is not None:
            from pomdp.whole_file import write_whole

            body = {"rows": self.rows, "digest": self.digest, "state": self.state.json()}
            sealed = body | {"seal": _seal(body)}
            write_whole(path, json.dumps(sealed, allow_nan=False, indent=1) + "\n")


def _seal(body: dict[str, Any]) -> str:
    """Tells a file that was damaged or edited: its numbers would be believed."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _digest(data: Scores | None = None, rows: int = 0) -> str:
    """Of the first rows of a stream."""
    found = hashlib.sha256()
    if data is not None:
        found.update(data.p[:rows].tobytes())
        found.update(data.y[:rows].tobytes())
    return found.hexdigest()


def _stored(args: argparse.Namespace, monitor: Monitor, log: StreamLog, tau: Any) -> State:
    """The state after the items of a file that it has not seen."""
    from harnesses.guard.region import GuardError, cut
    from harnesses.guard.scores import read_scores

    if log.state.time and not log.rows and not args.later:
        raise GuardError(
            f"{args.state} has seen {log.state.time} items that came by standard input; give --later with a file of "
            "the later items, or a new --state"
        )
    data = read_scores(args.stream)
    seen = 0 if args.later else log.rows
    if seen > data.size or _digest(data, seen) != (log.digest if seen else _digest(data, 0)):
        raise GuardError(
            f"{args.stream} does not begin with the {seen} items that {args.state} has seen; give the whole log, or "
            "--later with a file of the later items"
        )
    p, y = data.p[seen:], data.y[seen:]
    sent = p >= (0 if tau is None else cut(tau))
    state = log.state if not sent.any() else monitor.run(p[sent], y[sent], log.state)[0]
    StreamLog(state, data.size, _digest(data, data.size)).write(args.state)
    return state


def _live(args: argparse.Namespace, monitor: Monitor, log: StreamLog, tau: Any) -> State:
    """The state after every line of standard input; kept after each, so that a kill loses none."""
    from harnesses.guard.region import cut
    from harnesses.guard.scores import labels, probabilities

    state, told = log.state, log.state.alarm is not None
    least = 0 if tau is None else cut(tau)  # as for a file: a report at tau was sent
    for line, p, y in _lines():
        place = _at(f"{_INPUT} line {line}")
        report, label = float(probabilities([p], "p", place)[0]), int(labels([y], "y", place)[0])
        if report < least:
            continue
        state = monitor.observe(state, report, label)
        StreamLog(state, 0, _digest()).write(args.state)
        if state.alarm is not None and not told:
            told = True
            print(f"alarm at item {state.alarm.time}", file=sys.stderr, flush=True)
    return state


def _at(words: str) -> Place:
    """Names one item, whatever its row."""
    return lambda _: words


def _lines() -> Iterator[tuple[int, str, str]]:
    """Line number, p and y of each line of standard input after the header."""
    from harnesses.guard.region import GuardError
    from harnesses.guard.scores import positions

    reader = csv.reader(_decoded_lines(), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header:
            raise GuardError(f"{_INPUT} is empty; its first line names the columns, such as p,y")
        where = positions(header, _INPUT, ("p", "y"))
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if len(row) != len(header):
                raise GuardError(
                    f"{_INPUT} line {reader.line_num}: {len(row)} values, where the header names {len(header)} columns"
                )
            yield reader.line_num, row[where["p"]], row[where["y"]]
    except csv.Error as error:
        raise GuardError(
            f"{_INPUT} line {reader.line_num} is not CSV: {error}; write a row as 0.97,1 and double a quote"
        ) from error


def _decoded_lines() -> Iterator[str]:
    """Lines of standard input, each as soon as it is there; UTF-8, whatever the locale."""
    from harnesses.guard.region import GuardError

    for number, raw in enumerate(iter(sys.stdin.buffer.readline, b""), start=1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise GuardError(
                f"{_INPUT} line {number}: byte 0x{error.object[error.start]:02x} is not UTF-8; send CSV in UTF-8"
            ) from error


def _print_monitor(args: argparse.Namespace, monitor: Monitor, state: State) -> None:
    from harnesses.guard.monitor import REPORT

    found = state.json()
    if args.json:
        kept = {
            name: found[name] for name in ("time", "bad", "promised", "log_e", "e_value", "peak", "alarm")
        }
        against = monitor.against if monitor.against == REPORT else str(monitor.against)
        print(json.dumps(kept | {"delta": float(monitor.delta), "against": against}, allow_nan=False))
        return
    level = float(1 / monitor.delta)
    evidence = "infinite" if found["log_e"] is None else f"{_power(found['log_e'])}"
    print(f"{state.time} sends, {state.bad} disallowed, {state.promised:.4g} promised")
    print(f"evidence {evidence}, alarm at {level:.4g}; largest so far {_power(state.peak)}")
    if state.alarm is None:
        print("no alarm")
        return
    alarm = state.alarm
    print(
        f"alarm at send {alarm.time}: {alarm.bad} disallowed where {alarm.promised:.4g} were promised; before it:"
    )
    for time, p, y in alarm.last:
        print(f"  {time:>8}  p {p:<22} {'allowed' if y else 'disallowed'}")


def _power(log_e: float) -> str:
    """e^log_e, in powers of ten where it is beyond a float."""
    from math import exp, log

    return f"{exp(log_e):.4g}" if log_e < 700 else f"1e{log_e / log(10):.0f}"
