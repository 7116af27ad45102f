"""What a worker process does: compute one cell with one seed and write its record. Imports nothing heavy.

Every worker starts by importing this file, so that pandas and plotting stay out of it.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.provenance import device
from experiments.records import Record, plain, write_record
from experiments.sources import source_hash
from experiments.study import Skipped, Study, StudyError, load_study, study_name


@dataclass(frozen=True)
class Task:
    """One cell with one seed, and the key of its record."""

    key: str
    cell: dict[str, Any]
    seed: int | None


def work(reference: str, source: str, folder: str, task: Task, parent: int) -> Record:
    """Compute one task in a worker and write its record."""
    _end_with(parent)
    study = _worker_study(reference, source)
    record = Record(study_name(study), task.key, task.cell, task.seed, source, "done")
    begin, cpu = time.perf_counter(), time.process_time()
    try:
        outcome = study.run(dict(task.cell), task.seed)
        rows = tuple(plain(dict(row), f"row {index}") for index, row in enumerate(outcome.rows))
        record = replace(record, rows=rows, applied=outcome.applied)
    except Skipped as reason:
        record = replace(record, status="skipped", message=str(reason))
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        record = replace(record, status="failed", message=f"{message}\n{traceback.format_exc()}")
    record = replace(
        record,
        seconds=time.perf_counter() - begin,
        cpu_seconds=time.process_time() - cpu,
        device=device(),
    )
    write_record(Path(folder), record)
    return record


@lru_cache(maxsize=1)
def _worker_study(reference: str, source: str) -> Study:
    study = load_study(reference)
    if source_hash(Path(study.__file__)) != source:
        raise StudyError("the sources changed while the study ran; start it again")
    return study


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    # A worker that outlives its killed parent would meet the resumed run in the same cells.
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
