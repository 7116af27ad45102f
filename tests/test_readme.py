"""What the README says holds: its example runs, its commands and files exist, its dependencies are ours."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from experiments.__main__ import build_parser, package_commands

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_has_12_lines_and_gives_the_known_values() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert example.count("\n") == 12
    checks = (
        "assert abs(value.optimal.middle - 19.37136837) < 1e-6 and value.open_loop.contains(-20.0)\n"
        "assert abs(value.value_of_feedback.middle - 39.37136837) < 1e-6\n"
        "assert value.value_of_feedback.width <= 1e-6 and value.value_of_feedback.certified\n"
    )
    done = subprocess.run([sys.executable, "-c", example + checks], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 3


def test_every_command_is_named_and_every_name_is_a_command() -> None:
    named = set(re.findall(r"hpomdp ([a-z]+)\b", README))
    actions = build_parser(package_commands())._actions
    (commands,) = [action.choices for action in actions if action.dest == "command"]
    assert commands and named == set(commands)


def test_every_file_it_names_is_there() -> None:
    links = set(re.findall(r"\]\(([^)#:]+)\)", README))
    links |= set(re.findall(r"`((?:pomdp|experiments|tests|results)/[\w./]+)`", README))
    assert len(links) >= 5
    assert [link for link in sorted(links) if not (ROOT / link).exists()] == []


def test_every_dependency_has_a_row_with_its_reason() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = table["optional-dependencies"].values()
    lines = [*table["dependencies"], *(line for extra in extras for line in extra)]
    wanted = {re.split(r"[^A-Za-z0-9._-]", line)[0] for line in lines}
    listed = README.partition("| dependency | reason |")[2]
    rows = re.findall(r"^\| (\w[\w, -]*) \| [^|\n]{5,} \|$", listed, re.MULTILINE)
    assert {name for row in rows for name in row.split(", ")} == wanted
