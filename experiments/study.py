"""What a study is: the attributes its module must have, and how one is found and loaded. Imports no plotting.

A study is one file. At its top stand the question, the primary metric, the contrast and its predicted sign,
so that a reader knows what was asked before seeing what came out.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from experiments.records import digest, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from experiments.tables import Table

FOLDER = Path(__file__).resolve().parent


class StudyError(ValueError):
    """A study that cannot be found, lacks a part, or is asked for something it does not have."""


class Skipped(Exception):
    """Raised by a study's `run` where what the cell needs is absent; the text says what is to be provided."""


@dataclass(frozen=True)
class Outcome:
    """What one cell gave: rows of plain values, and the fingerprint of what its arm changed, if any."""

    rows: tuple[Mapping[str, Any], ...]
    applied: str | None = None


class Study(Protocol):
    """The module of a study.

    SEEDS is how many seeds each cell runs with by default; 0 says that nothing is drawn at random.
    BASELINE names the cell entries that define an arm and their values in the baseline arm, or is None.
    `cells` lists the grid: dicts of plain values that hold everything `run` needs. `run` may raise Skipped.
    `analyse` takes the frame of all rows (cell entries, `seed`, `applied`, then the row) and gives one frame
    per entry of TABLES; `figure` and `headline` read these frames and nothing else.
    """

    __name__: str
    __file__: str
    QUESTION: str
    METRIC: str
    CONTRAST: str
    PREDICTED_SIGN: str
    SEEDS: int
    BASELINE: Mapping[str, Any] | None
    PRESETS: Mapping[str, Any]
    TABLES: tuple[Table, ...]

    def cells(self, parameters: Any) -> Sequence[Mapping[str, Any]]:
        """The grid."""
        ...

    def run(self, cell: Mapping[str, Any], seed: int | None) -> Outcome:
        """Compute one cell with one seed."""
        ...

    def analyse(self, frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
        """Tables by name, from all rows."""
        ...

    def figure(self, tables: Mapping[str, pd.DataFrame], width: float) -> Figure:
        """The figure at its printed width in inches, from the stored tables."""
        ...

    def headline(self, tables: Mapping[str, pd.DataFrame]) -> str:
        """What came out, in one to three sentences."""
        ...


TEXTS = ("QUESTION", "METRIC", "CONTRAST", "PREDICTED_SIGN")
OTHERS = ("SEEDS", "BASELINE", "PRESETS", "TABLES")
FUNCTIONS = ("cells", "run", "analyse", "figure", "headline")


def fingerprint(value: Any) -> str:
    """Fingerprint of what an arm let the model see or do: digest of contexts, actions or observations."""
    return digest(value)


def study_name(study: Study | ModuleType) -> str:
    """Name of a study: its file's name without the ending."""
    return Path(str(study.__file__)).stem


def shipped_studies() -> list[str]:
    """Names of the studies in this package: the files with a question and cells; none of them is run."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if _is_study(path))


def load_study(name: str) -> Study:
    """Load a study by its name in this package or its file's path; StudyError for a missing part."""
    if name.endswith(".py"):
        path = Path(name).resolve()
        if not path.is_file():
            raise StudyError(f"study file {name} does not exist; expected a Python file such as my_study.py")
        module = (
            importlib.import_module(f"experiments.{path.stem}") if path.parent == FOLDER else _from_file(path)
        )
    else:
        wanted = name.replace("-", "_")
        known = shipped_studies()
        if wanted not in known:
            raise StudyError(
                f"no study {name!r}; known: {', '.join(known)}; or give the path of a file ending in .py"
            )
        module = importlib.import_module(f"experiments.{wanted}")
    _check_parts(module)
    return module  # type: ignore[return-value]


def parameters_of(study: Study, preset: str) -> Any:
    """The frozen parameters of a preset; StudyError listing the presets where there is none of that name."""
    if preset not in study.PRESETS:
        raise StudyError(
            f"study {study_name(study)} has no preset {preset!r}; it has {', '.join(study.PRESETS)}"
        )
    return study.PRESETS[preset]


def grid(study: Study, parameters: Any) -> list[dict[str, Any]]:
    """The study's cells in plain values; StudyError where two are equal or there is none."""
    cells = [plain(dict(cell), "cell") for cell in study.cells(parameters)]
    if not cells:
        raise StudyError(f"study {study_name(study)} has no cells for these parameters")
    seen: dict[str, dict[str, Any]] = {}
    for cell in cells:
        if seen.setdefault(digest(cell), cell) is not cell:
            raise StudyError(f"study {study_name(study)} lists the cell {cell} twice")
    return cells


def seed_list(study: Study, seeds: int | None) -> list[int | None]:
    """Seeds 0..n-1, or the single seed None for a study that draws nothing at random."""
    if study.SEEDS == 0:
        if seeds is not None:
            raise StudyError(f"study {study_name(study)} draws nothing at random; leave out --seeds")
        return [None]
    count = study.SEEDS if seeds is None else seeds
    if count < 1:
        raise StudyError(f"--seeds is {count}; a study needs at least one seed, such as --seeds 8")
    return list(range(count))


def _is_study(path: Path) -> bool:
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return {"QUESTION", "cells", "run"} <= names


def _from_file(path: Path) -> ModuleType:
    name = f"_study_{digest(str(path))[:8]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise StudyError(f"study file {path.name} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name while it is being run.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise StudyError(f"study file {path.name} fails to load: {type(error).__name__}: {error}") from error
    return module


def _check_parts(module: ModuleType) -> None:
    where = f"study {study_name(module)}"
    missing = [name for name in (*TEXTS, *OTHERS, *FUNCTIONS) if not hasattr(module, name)]
    if missing:
        raise StudyError(
            f"{where} lacks {', '.join(missing)}; experiments/value_of_feedback.py shows every part"
        )
    for name in TEXTS:
        text = getattr(module, name)
        if not isinstance(text, str) or not text.strip():
            raise StudyError(f"{where}: {name} must be a text that says something")
    for name, parameters in module.PRESETS.items():
        settings = getattr(parameters, "__dataclass_params__", None)
        if settings is None or not settings.frozen:
            raise StudyError(
                f"{where}: preset {name!r} must be a frozen dataclass, such as Parameters(points=9)"
            )
    if not {"small", "full"} <= set(module.PRESETS):
        raise StudyError(f"{where} has presets {', '.join(module.PRESETS)}; it needs small and full")
