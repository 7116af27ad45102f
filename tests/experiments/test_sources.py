"""The source hash covers what computes a record and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.sources import source_files, source_hash

STUDY = """
from pomdp.value import evaluate
from harnesses import runtime
import json


def run(cell, seed):
    import experiments.late
    return 1


def analyse(frame):
    return 1


def figure(tables, width):
    from experiments import colours
    return 1
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "pomdp/__init__.py": "",
        "pomdp/value.py": "from .model import POMDP\nfrom . import belief\n",
        "pomdp/model.py": "import numpy\n",
        "pomdp/belief.py": "x = 1\n",
        "pomdp/unused.py": "x = 1\n",
        "harnesses/__init__.py": "from .deep.core import f\n",
        "harnesses/runtime.py": "from ..pomdp import nothing\n",
        "harnesses/deep/__init__.py": "",
        "harnesses/deep/core.py": "from ..other import y\n",
        "harnesses/other.py": "y = 2\n",
        "experiments/__init__.py": "",
        "experiments/late.py": "import pomdp.model as m\n",
        "experiments/colours.py": "",
        "json.py": "",
        "elsewhere/study.py": STUDY,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(project: Path) -> set[str]:
    found = source_files(project / "elsewhere/study.py", project)
    return {path.relative_to(project).as_posix() for path in found}


def test_every_module_that_may_be_imported_is_listed_and_no_other(project: Path) -> None:
    assert names(project) == {
        "pomdp/__init__.py", "pomdp/value.py", "pomdp/model.py", "pomdp/belief.py",
        "harnesses/__init__.py", "harnesses/runtime.py", "harnesses/other.py",
        "harnesses/deep/__init__.py", "harnesses/deep/core.py",
         "experiments/__init__.py", "experiments/late.py",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["pomdp/belief.py", "harnesses/other.py", "experiments/late.py"])
def test_a_change_in_an_imported_module_changes_the_hash(project: Path, name: str) -> None:
    study = project / "elsewhere/study.py"
    before = source_hash(study, project)
    (project / name).write_text((project / name).read_text() + "z = 3\n")
    assert source_hash(study, project) != before


@pytest.mark.parametrize("name", ["pomdp/unused.py", "experiments/colours.py", "json.py"])
def test_a_change_elsewhere_keeps_the_hash(project: Path, name: str) -> None:
    study = project / "elsewhere/study.py"
    before = source_hash(study, project)
    (project / name).write_text("z = 3\n")
    assert source_hash(study, project) == before


def test_a_change_of_run_changes_the_hash_and_one_of_the_figure_does_not(project: Path) -> None:
    study = project / "elsewhere/study.py"
    before = source_hash(study, project)
    study.write_text(STUDY.replace("colours\n    return 1", "colours\n    return 2"))
    assert source_hash(study, project) == before
    study.write_text(STUDY.replace("late\n    return 1", "late\n    return 2"))
    assert source_hash(study, project) != before


def test_the_hash_does_not_depend_on_where_the_project_lies(project: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    for path in sorted(project.rglob("*.py")):
        target = moved / path.relative_to(project)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    here, there = (root / "elsewhere/study.py" for root in (project, moved))
    assert source_hash(here, project) == source_hash(there, moved)


def test_text_moved_between_two_files_changes_the_hash(project: Path) -> None:
    study = project / "elsewhere/study.py"
    before = source_hash(study, project)
    (project / "pomdp/belief.py").write_text("")
    (project / "pomdp/__init__.py").write_text("x = 1\n")
    assert source_hash(study, project) != before
