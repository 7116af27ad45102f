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
        "pomdp/model.py": "import numpy\nif TYPE_CHECKING:\n    from pomdp import unused\nelse:\n    x = 1\n",
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


LAYERED = '''
"""What this study is."""

import math
from experiments import late, colours

QUESTION = "why?"
SHADE = colours.one
DEPTH = 3
TABLES = (late.table("wide"), DEPTH)


def _draw(axes):
    return SHADE


def _both(x):
    return math.sqrt(x) + DEPTH


def run(cell, seed):
    return _both(cell)


def figure(tables, width):
    return _draw(_both(2))


def _unused():
    return 0
'''


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("What this study is", "What this study was", False),
        ("why?", "how?", False),
        ("colours.one", "colours.two", False),
        ("return SHADE", "return SHADE, 1", False),
        ('"wide"', '"narrow"', False),
        # What run needs as well, and what nothing refers to and may therefore matter, count.
        ("DEPTH = 3", "DEPTH = 4", True),
        ("math.sqrt(x)", "math.exp(x)", True),
        ("return 0", "return 1", True),
        ("_both(cell)", "_both(seed)", True),
    ],
)
def test_what_only_presentation_refers_to_does_not_count(
    project: Path, old: str, new: str, counts: bool
) -> None:
    study = project / "elsewhere/study.py"
    study.write_text(LAYERED)
    before = source_hash(study, project)
    assert LAYERED.count(old) == 1
    study.write_text(LAYERED.replace(old, new))
    assert (source_hash(study, project) != before) == counts


def test_the_hash_does_not_depend_on_where_the_project_lies(project: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    for path in sorted(project.rglob("*.py")):
        target = moved / path.relative_to(project)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    here, there = (root / "elsewhere/study.py" for root in (project, moved))
    assert source_hash(here, project) == source_hash(there, moved)


@pytest.mark.parametrize(
    "text",
    [
        "import pomdp\n\n\ndef run(cell, seed):\n    return pomdp.solve(cell)\n",
        "import pomdp as p\n\n\ndef run(cell, seed):\n    return p.solve(cell)\n",
        "from pomdp import solve\n",
    ],
)
def test_a_name_that_its_package_imports_late_counts_and_the_others_do_not(project: Path, text: str) -> None:
    (project / "pomdp/__init__.py").write_text(
        'HOME = {"solve": "pomdp.value", "simulate": "pomdp.unused"}\n'
    )
    (project / "elsewhere/study.py").write_text(text)
    assert names(project) == {"pomdp/__init__.py", "pomdp/value.py", "pomdp/model.py", "pomdp/belief.py"}


def test_text_moved_between_two_files_changes_the_hash(project: Path) -> None:
    study = project / "elsewhere/study.py"
    before = source_hash(study, project)
    (project / "pomdp/belief.py").write_text("")
    (project / "pomdp/__init__.py").write_text("x = 1\n")
    assert source_hash(study, project) != before
