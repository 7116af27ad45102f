"""Run a study: every (cell, seed) once, in worker processes, resumable after a kill. Imports joblib, pandas.

Workers are fresh processes (loky), never forks, because a fork after JAX or numba has started threads can
hang. Each worker writes its own record, so that killing everything loses only the cells in progress.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend import resource_tracker as loky_tracker
from tqdm import tqdm

from experiments import provenance
from experiments.records import Record, read_other_records, read_records, record_key
from experiments.sources import source_hash
from experiments.study import Study, StudyError, grid, load_study, seed_list, study_name
from experiments.worker import Task, work

MARKER = ".hpomdp-run"


class Interrupted(Exception):
    """Ctrl-C: what was finished stays; the same command goes on from there."""


@dataclass(frozen=True)
class Run:
    """All records of a run in the order of its grid.

    `source` is the hash of the sources now, `computed` how many cells ran this time, `elsewhere` how many
    have records of other versions of the sources that were not used.
    """

    study: Study
    folder: Path
    records: tuple[Record, ...]
    source: str
    computed: int
    elsewhere: int
    manifest: dict[str, Any]

    def with_status(self, status: str) -> list[Record]:
        """The records that are `done`, `failed` or `skipped`."""
        return [record for record in self.records if record.status == status]


def tasks_of(study: Study, parameters: Any, seeds: Sequence[int | None]) -> list[Task]:
    """Every cell with every seed; seeds vary fastest."""
    name = study_name(study)
    return [
        Task(record_key(name, cell, seed), cell, seed) for cell in grid(study, parameters) for seed in seeds
    ]


def run_study(
    reference: str,
    parameters: Any,
    *,
    preset: str,
    folder: Path,
    seeds: int | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    retry: bool = False,
    mixed: bool = False,
    argv: Sequence[str] = (),
) -> Run:
    """Run what is missing of a study (its name or path) and return all of its records.

    `fresh` forgets the folder's records first; `retry` runs failed cells again; `mixed` accepts records that
    other versions of the sources computed. Skipped cells are always tried again. Raises Interrupted on
    Ctrl-C.
    """
    study = load_study(reference)
    source = source_hash(Path(study.__file__))
    seeds_used = seed_list(study, seeds)
    tasks = tasks_of(study, parameters, seeds_used)
    if jobs is not None and jobs < 1:
        raise StudyError(f"--jobs is {jobs}; a run needs at least one process, such as --jobs 2")
    workers = max(1, min(jobs or joblib.cpu_count(), len(tasks)))
    opening = provenance.manifest(
        study=study_name(study), preset=preset, parameters=parameters, seeds=seeds_used, source=source,
        argv=argv, jobs=workers,
    )  # fmt: skip
    begin = time.perf_counter()
    with _only_run_in(folder):
        if fresh:
            shutil.rmtree(folder / "records", ignore_errors=True)
        provenance.write_manifest(folder, opening)
        kept = _usable(read_records(folder, source), tasks, retry)
        others = {} if fresh else read_other_records(folder, source)
        if mixed:
            kept = {**_usable(others, tasks, retry), **kept}
        waiting = [task for task in tasks if task.key not in kept]
        computed = _compute(reference, source, folder, waiting, workers, len(tasks), study_name(study))
    records = tuple({**kept, **computed}[task.key] for task in tasks)
    closing = provenance.finished(
        opening, records, sources=sorted({record.source for record in records}),
        wall_seconds=time.perf_counter() - begin,
    )  # fmt: skip
    provenance.write_manifest(folder, closing)
    unused = sum(task.key in others and {**kept, **computed}[task.key].source == source for task in tasks)
    return Run(study, folder, records, source, len(computed), unused, closing)


def frame_of(run: Run) -> pd.DataFrame:
    """All rows of the finished records: cell entries, seed, `applied`, then the row's own entries."""
    arms = applied(run.study, run.records)
    rows = [
        {**record.cell, "seed": record.seed, "applied": arms[record.key], **row}
        for record in run.with_status("done")
        for row in record.rows
    ]
    if not rows:
        failed = run.with_status("failed")
        reason = f"; the first failure: {failed[0].message}" if failed else ""
        raise StudyError(f"study {study_name(run.study)}: no cell finished{reason}")
    return pd.DataFrame(rows)


def applied(study: Study, records: Sequence[Record]) -> dict[str, bool | None]:
    """Manipulation check: for each finished record whether its arm changed anything against the baseline arm.

    None where the record is the baseline itself, gives no fingerprint, or its baseline did not finish. False
    means *not applied*: such an arm measures nothing and must not be read as "no effect".
    """
    name = study_name(study)
    prints = {record.key: record.applied for record in records if record.status == "done"}
    checked: dict[str, bool | None] = {}
    for record in records:
        checked[record.key] = None
        if study.BASELINE is None or prints.get(record.key) is None:
            continue
        partner = record_key(name, {**record.cell, **study.BASELINE}, record.seed)
        if partner != record.key and prints.get(partner) is not None:
            checked[record.key] = prints[record.key] != prints[partner]
    return checked


def not_applied(study: Study, records: Sequence[Record]) -> list[str]:
    """One line per arm of which some record changed nothing: the arm and in how many of its cells."""
    if study.BASELINE is None:
        return []
    arms: dict[str, list[bool]] = {}
    for record, checked in zip(records, applied(study, records).values(), strict=True):
        if checked is not None:
            arm = ", ".join(f"{name}={record.cell.get(name)}" for name in study.BASELINE)
            arms.setdefault(arm, []).append(checked)
    return [
        f"not applied: {arm} equals its baseline in {verdicts.count(False)} of {len(verdicts)} cells"
        for arm, verdicts in arms.items()
        if not all(verdicts)
    ]


def _usable(records: Mapping[str, Record], tasks: Sequence[Task], retry: bool) -> dict[str, Record]:
    keep = {"done"} if retry else {"done", "failed"}
    wanted = {task.key for task in tasks}
    return {key: record for key, record in records.items() if key in wanted and record.status in keep}


def _compute(
    reference: str, source: str, folder: Path, tasks: Sequence[Task], workers: int, total: int, name: str
) -> dict[str, Record]:
    if not tasks:
        return {}
    # Worker processes outlive a change of the current folder.
    reference = str(Path(reference).resolve()) if reference.endswith(".py") else reference
    target = str(folder.resolve())
    threads = max(1, joblib.cpu_count() // workers)
    _workers_for(source)
    _start_tracker()
    finished: dict[str, Record] = {}
    with tqdm(
        total=total, initial=total - len(tasks), desc=name, unit="cell", file=sys.stderr, disable=None
    ) as bar:
        results: Generator[Record, None, None] = _nothing()
        try:
            # With one process joblib would compute here, where a study could catch Ctrl-C or end the program;
            # two processes fed one cell at a time compute one cell at a time.
            processes = max(2, workers)
            with joblib.parallel_config(backend="loky", n_jobs=processes, inner_max_num_threads=threads):
                calls = (joblib.delayed(work)(reference, source, target, task, os.getpid()) for task in tasks)
                # One cell at a time and no reserve: a kill then interrupts only running cells.
                pool = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=workers)
                with _interrupt_blocked():
                    results = pool(calls)
                for record in results:
                    finished[record.key] = record
                    bar.update()
                    failures = sum(item.status == "failed" for item in finished.values())
                    if failures:
                        bar.set_postfix(failed=failures)
        except BaseException as stop:
            # Joblib ends its processes when the exception passes through its generator.
            with suppress(type(stop)):
                results.throw(stop)
            _seen_by_workers.clear()
            if not isinstance(stop, KeyboardInterrupt):
                raise
            # Workers may have written more than had been handed over here.
            written = set(read_records(folder, source)) & {task.key for task in tasks}
            done = total - len(tasks) + len(written | set(finished))
            raise Interrupted(
                f"interrupted: {done} of {total} records are kept; the same command goes on"
            ) from None
    return finished


def _nothing() -> Generator[Record, None, None]:
    yield from ()


@contextmanager
def _interrupt_blocked() -> Iterator[None]:
    """Hold Ctrl-C back: processes started meanwhile never see it, and this one sees it afterwards."""
    # When it first starts, Python's tracker of shared resources unblocks the signal again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_tracker() -> None:
    """Start the process in which loky removes what killed processes leave, so that it does so without a word."""
    before = os.environ.get("PYTHONWARNINGS")
    quiet = "ignore:resource_tracker:UserWarning"
    os.environ["PYTHONWARNINGS"] = quiet if not before else f"{before},{quiet}"
    try:
        loky_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


_seen_by_workers: set[str] = set()
"""Source hashes that the living worker processes have loaded; kept here because joblib keeps processes."""


def _workers_for(source: str) -> None:
    # A process that has imported one version of a module would go on with it.
    if _seen_by_workers - {source}:
        _end_workers()
    _seen_by_workers.add(source)


def _end_workers() -> None:
    get_reusable_executor().shutdown(wait=True, kill_workers=True)
    _seen_by_workers.clear()


@contextmanager
def _only_run_in(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; the lock ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / MARKER).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(
                f"{folder} is in use by another run; wait for it or choose another --out"
            ) from None
        yield
