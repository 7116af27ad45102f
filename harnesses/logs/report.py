"""Report: what is found about one run and counted over a group of runs; imports the parts that find it.

A group is the runs of one folder, format and setting. Undefined shares are None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from harnesses.context import ContextMap
from harnesses.logs.dropping import Dropped, dropped
from harnesses.logs.run import Run
from harnesses.logs.stalls import Stalls, stalls
from harnesses.logs.within_task import Ended, compare

FAILURES = ("error", "timeout", "denied")
RULES = ("consecutive", "total", "growth")


class Group(NamedTuple):
    """What a run is counted under."""

    folder: str
    format: str
    setting: str


@dataclass(frozen=True)
class RunReport:
    """One run's own findings: sizes, results by status, stalls, and what each map drops."""

    run: Run
    calls: int
    tokens: int
    statuses: Counter[str]
    stalls: Stalls
    maps: tuple[Dropped, ...]

    @classmethod
    def of(cls, run: Run, maps: Sequence[ContextMap], count_head: bool = False) -> RunReport:
        """Everything about a run; `count_head` as in `dropped`."""
        return cls(
            run,
            sum(step.call is not None for step in run.steps),
            run.tokens,
            Counter(step.result.status for step in run.steps if step.result is not None),
            stalls(run.steps),
            tuple(dropped(phi, run, count_head) for phi in maps),
        )

    def json(self) -> dict[str, Any]:
        """As data; each entry of `gone` is [step, results missing, tokens missing] from that step on."""
        run, outcome = self.run, self.run.outcome
        return {
            "id": run.id,
            "task": run.task,
            "success": outcome.success,
            "attempted": outcome.attempted,
            "carried_out": outcome.carried_out,
            "ended": outcome.ended,
            "steps": len(run.steps),
            "calls": self.calls,
            "tokens": self.tokens,
            "head_tokens": run.head.tokens,
            "counted_by": run.counted,
            "failures": {status: self.statuses[status] for status in FAILURES},
            "stalled_at": asdict(self.stalls),
            "counts": dict(outcome.counts),
            "maps": [_map_json(found) for found in self.maps],
        }


@dataclass
class MapTally:
    """What one map does to the runs of a group; sizes in tokens."""

    runs: int = 0
    touched: int = 0
    results: int = 0
    of_results: int = 0
    result_tokens: int = 0
    of_result_tokens: int = 0

    def add(self, found: Dropped) -> None:
        """One more run."""
        self.runs += 1
        self.touched += found.touched
        self.results += found.results
        self.of_results += found.of_results
        self.result_tokens += found.result_tokens
        self.of_result_tokens += found.of_result_tokens

    def json(self, name: str) -> dict[str, Any]:
        """Counts and shares."""
        return {
            "map": name,
            "runs_touched": self.touched,
            "share_touched": share(self.touched, self.runs),
            "results_dropped": self.results,
            "results": self.of_results,
            "share_dropped": share(self.results, self.of_results),
            "result_tokens_dropped": self.result_tokens,
            "result_tokens": self.of_result_tokens,
            "share_tokens_dropped": share(self.result_tokens, self.of_result_tokens),
        }


@dataclass
class Injections:
    """Injected texts planted, injected goals reached, and the user's task done beside them.

    `utility` counts the attempted runs that did the user's task, `both_right` those of them in which the injected goal
    was not reached; each over the runs for which the log has the verdicts, `judged` and `carried_out_judged`.
    """

    attempted: int = 0
    carried_out_judged: int = 0
    carried_out: int = 0
    judged: int = 0
    utility: int = 0
    both_judged: int = 0
    both_right: int = 0
    with_denial: int = 0

    def add(self, report: RunReport) -> None:
        """One more run, if an injection was attempted in it."""
        outcome = report.run.outcome
        if not outcome.attempted:
            return
        self.attempted += 1
        self.with_denial += report.statuses["denied"] > 0
        self.carried_out_judged += outcome.carried_out is not None
        self.carried_out += bool(outcome.carried_out)
        self.judged += outcome.success is not None
        self.utility += bool(outcome.success)
        self.both_judged += outcome.success is not None and outcome.carried_out is not None
        self.both_right += outcome.success is True and outcome.carried_out is False

    def json(self) -> dict[str, Any] | None:
        """As data; None without an attempt, and a count for which the log has no verdict is None too."""
        if not self.attempted:
            return None
        return {
            "attempted": self.attempted,
            "carried_out": self.carried_out if self.carried_out_judged else None,
            "utility": self.utility if self.judged else None,
            "utility_without_injected_goal": self.both_right if self.both_judged else None,
            "runs_with_denial": self.with_denial,
        }


@dataclass
class Tally:
    """The counts of a group, run by run; its size grows with the number of tasks and a few bytes a run."""

    maps: tuple[str, ...]
    files: set[str] = field(default_factory=set)
    runs: int = 0
    judged: int = 0
    successes: int = 0
    counted_by: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    runs_with: Counter[str] = field(default_factory=Counter)
    stalled: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    injections: Injections = field(default_factory=Injections)
    lengths: dict[str | None, list[Ended]] = field(default_factory=dict)
    map_tallies: list[MapTally] = field(default_factory=list)

    def __post_init__(self) -> None:
        """A tally for each map."""
        self.map_tallies = [MapTally() for _ in self.maps]

    def add(self, report: RunReport, file: str) -> None:
        """One more run."""
        run, outcome = report.run, report.run.outcome
        self.files.add(file)
        self.runs += 1
        self.judged += outcome.success is not None
        self.successes += bool(outcome.success)
        self.counted_by[run.counted] += 1
        self.sums.update(steps=len(run.steps), calls=report.calls, tokens=report.tokens)
        self.sums.update(report.statuses)
        self.runs_with.update(status for status in FAILURES if report.statuses[status])
        self.stalled.update(rule for rule in RULES if getattr(report.stalls, rule) is not None)
        self.counts.update(outcome.counts)
        self.injections.add(report)
        lengths = self.lengths.setdefault(run.task, [])
        if outcome.success is not None:
            lengths.append((report.tokens, outcome.success))
        for tally, found in zip(self.map_tallies, report.maps, strict=True):
            tally.add(found)

    def json(self, group: Group) -> dict[str, Any]:
        """As data."""
        comparison = compare(self.lengths)
        return {
            **group._asdict(),
            "files": len(self.files),
            "runs": self.runs,
            "tasks": sum(task is not None for task in self.lengths),
            "successes": self.successes if self.judged else None,
            "judged": self.judged,
            "steps": self.sums["steps"],
            "calls": self.sums["calls"],
            "tokens": self.sums["tokens"],
            "counted_by": dict(self.counted_by),
            "failures": {status: self.sums[status] for status in FAILURES},
            "runs_with": {status: self.runs_with[status] for status in FAILURES},
            "runs_stalled": {rule: self.stalled[rule] for rule in RULES},
            "injections": self.injections.json(),
            "counts": dict(self.counts),
            "length": None if comparison is None else comparison.json(),
            "maps": [tally.json(name) for name, tally in zip(self.maps, self.map_tallies, strict=True)],
        }


def share(part: int, whole: int) -> float | None:
    """part / whole, None of nothing."""
    return part / whole if whole else None


def _map_json(found: Dropped) -> dict[str, Any]:
    return {
        "map": found.map,
        "results_dropped": found.results,
        "results": found.of_results,
        "result_tokens_dropped": found.result_tokens,
        "result_tokens": found.of_result_tokens,
        "tokens_dropped": found.tokens,
        "gone": [[gone.step, gone.results, gone.tokens] for gone in found.gone],
    }
