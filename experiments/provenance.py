"""Where a result comes from: commit, versions, device, parameters, times. Imports the standard library.

The manifest of a run holds nothing about the machine beyond its kind: no host, no user, no absolute path of a
program.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from experiments.records import Record, RecordError, digest, plain
from experiments.sources import PROJECT
from pomdp.whole_file import write_whole

PACKAGES = (
    "numpy", "scipy", "jax", "jaxlib", "numba", "pandas", "pyarrow", "matplotlib", "tueplots", "joblib",
    "python-flint", "pomdp-py",
)  # fmt: skip


def commit(root: Path = PROJECT) -> dict[str, Any]:
    """Commit of the checkout and whether tracked files outside results differ from it; None without one."""
    head = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)results")
    return {"commit": head or None, "dirty": None if changes is None else bool(changes)}


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that results depend on; None for one that is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def device() -> dict[str, Any]:
    """Where this process computes: kind of machine; JAX's devices, x64 and generator if it was imported.

    Asking does not import JAX, so that a study without it neither waits for it nor occupies an accelerator.
    """
    found: dict[str, Any] = {"machine": platform.machine(), "system": platform.system(), "jax": None}
    jax = sys.modules.get("jax")
    if jax is not None:
        found["jax"] = {
            "backend": jax.default_backend(),
            "devices": sorted({item.device_kind for item in jax.devices()}),
            "x64": bool(jax.config.jax_enable_x64),
            "prng": str(jax.config.jax_default_prng_impl),
        }
    return found


def run_id(study: str, parameters: Any, seeds: Sequence[int | None], source: str) -> str:
    """Twelve hexadecimal digits that name a run by what determines it, not by when it was made."""
    return digest({"study": study, "parameters": parameters, "seeds": list(seeds), "source": source})[:12]


def manifest(
    *,
    study: str,
    preset: str,
    parameters: Any,
    seeds: Sequence[int | None],
    source: str,
    argv: Sequence[str],
    jobs: int,
) -> dict[str, Any]:
    """What is known of a run before its first cell."""
    return {
        "study": study,
        "run_id": run_id(study, parameters, seeds, source),
        "preset": preset,
        "parameters": plain(asdict(parameters), "parameters"),
        "parameters_hash": digest(parameters),
        "seeds": list(seeds),
        "source": source,
        **commit(),
        "versions": versions(),
        "cores": os.cpu_count(),
        "jobs": jobs,
        "argv": command(argv),
        "started": _now(),
        "finished": None,
    }


def finished(
    opening: Mapping[str, Any], records: Iterable[Record], *, sources: Sequence[str], wall_seconds: float
) -> dict[str, Any]:
    """The manifest of a run whose records are complete: counts, times, the devices that computed them.

    `wall_seconds` is this call's; a resumed run's records may be older, and their times are in the sums.
    """
    kept = list(records)
    devices: dict[str, dict[str, Any]] = {
        digest(record.device): record.device for record in kept if record.device
    }
    return {
        **opening,
        "finished": _now(),
        "records": {
            status: sum(record.status == status for record in kept)
            for status in ("done", "failed", "skipped")
        },
        "record_sources": list(sources),
        "devices": [devices[name] for name in sorted(devices)],
        "wall_seconds": wall_seconds,
        "record_seconds": sum(record.seconds for record in kept),
        "record_cpu_seconds": sum(record.cpu_seconds for record in kept),
    }


def write_manifest(folder: Path, body: Mapping[str, Any]) -> None:
    """Write manifest.json whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "manifest.json", json.dumps(body, indent=1, allow_nan=False) + "\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run's folder; RecordError where there is none."""
    path = folder / "manifest.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise RecordError(
            f"{folder} holds no readable manifest.json ({type(error).__name__}); run the study first"
        ) from error


def command(argv: Sequence[str]) -> list[str]:
    """The command line without the program's folder, paths below the current folder made relative."""
    if not argv:
        return []
    here = f"{Path.cwd()}{os.sep}"
    program = Path(argv[0]).name
    return [
        "hpomdp" if program == "__main__.py" else program,
        *(word.removeprefix(here) for word in argv[1:]),
    ]


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
