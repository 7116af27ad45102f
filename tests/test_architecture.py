"""The laws of the tree, read from the sources: who may import whom, and what every module must have.

Each rule is a function from modules to sentences, one per breach; the first half of the file applies the
rules to the project, the second half to sources that break them: a rule that has stopped seeing fails too.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("pomdp", "harnesses", "experiments")
MAX_LINES = 400
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}

# Distributions whose modules carry another name.
IMPORT_NAMES = {"pomdp-py": "pomdp_py", "python-flint": "flint", "scikit-learn": "sklearn"}

LANGGRAPH = (
    "harnesses/desk/",
    "harnesses/langgraph_adapter.py",
    "harnesses/langgraph_messages.py",
    "harnesses/langchain_model.py",
)

# Modules of others, and the only files (or folders, ending in a slash) that may import them.
CONFINED = {
    "pomdp_py": ("pomdp/interop.py",),
    "matplotlib": ("experiments/",),
    "tueplots": ("experiments/",),
    "hypothesis": ("pomdp/testing.py", "harnesses/testing.py", "harnesses/guard/testing.py"),
    "langgraph": LANGGRAPH,
    "langchain": LANGGRAPH,
    "langchain_core": LANGGRAPH,
    "gguf": ("harnesses/desk/lm_weights.py",),
    "langchain_typesafe": ("harnesses/desk/jev.py",),
}

# The checker of certificates must not be able to repeat a mistake of the code that it checks.
CHECKER, SOLVER = ("pomdp.certificate", "pomdp.check"), "pomdp.bounds"


@dataclass(frozen=True)
class Module:
    """A source file: its path from the root and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.path)

    @property
    def name(self) -> str:
        """The dotted name: a.b for a/b.py and for a/b/__init__.py."""
        return ".".join(PurePosixPath(self.path).with_suffix("").parts).removesuffix(".__init__")

    @property
    def package(self) -> str:
        """The dotted name that one leading dot of a relative import stands for."""
        return self.name if self.path.endswith("/__init__.py") else self.name.rpartition(".")[0]

    def imports(self) -> Iterator[str]:
        """Every dotted name the file imports, anywhere in it; `from a import b` gives a.b."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{self.resolved(node)}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Call) and re.search(
                r"\b(__import__|import_module)$", ast.unparse(node.func)
            ):
                yield from (a.value for a in node.args[:1] if isinstance(a, ast.Constant))

    def resolved(self, node: ast.ImportFrom) -> str:
        """The absolute name after `from`."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def inside(name: str, package: str) -> bool:
    """Whether the dotted name is `package` or lies in it."""
    return name == package or name.startswith(package + ".")


def against_the_direction(module: Module) -> list[str]:
    """Imports of a later layer, of the tests or of the benchmark programs."""
    own = LAYERS.index(module.name.partition(".")[0])
    forbidden = {*LAYERS[own + 1 :], "tests", "benchmarks"}
    return [
        f"{module.path} imports {name}" for name in module.imports() if name.partition(".")[0] in forbidden
    ]


def out_of_confinement(module: Module) -> list[str]:
    """Imports of a confined package by a file that may not."""
    return [
        f"{module.path} imports {name}, which belongs in {' or '.join(places)}"
        for name in module.imports()
        for package, places in CONFINED.items()
        if inside(name, package)
        and not any(module.path == p or (p.endswith("/") and module.path.startswith(p)) for p in places)
    ]


def undeclared(module: Module, declared: set[str]) -> list[str]:
    """Imports of packages that are neither of the standard library, ours, nor among the dependencies."""
    known = {*sys.stdlib_module_names, *LAYERS, *declared}
    return [
        f"{module.path} imports {name}" for name in module.imports() if name.partition(".")[0] not in known
    ]


def malformed(module: Module) -> list[str]:
    """No docstring that says what belongs there, a name that says nothing, or too many lines for one noun."""
    found = []
    if not ast.get_docstring(module.tree):
        found.append(f"{module.path} has no docstring")
    if VAGUE_NAMES & set(PurePosixPath(module.path).with_suffix("").parts):
        found.append(f"{module.path} is named after nothing; name it after what it holds")
    lines = module.text.count("\n")
    if lines > MAX_LINES:
        found.append(f"{module.path} has {lines} lines, more than {MAX_LINES}")
    return found


def path_to_solver(modules: Mapping[str, Module]) -> list[str]:
    """A chain of imports from the checker to the solver, if there is one.

    An import goes to the longest part of its name that is a module. So `from pomdp.model import POMDP` does
    not lead into `pomdp/__init__`, which runs on any import and may list the solver among what is public,
    but `from pomdp import POMDP` does.
    """
    chains = [[name] for name in modules if name in CHECKER]
    seen = {chain[-1] for chain in chains}
    while chains:
        chain = chains.pop()
        for name in modules[chain[-1]].imports():
            if inside(name, SOLVER):
                return [" -> ".join([*chain, name])]
            while name not in modules and "." in name:
                name = name.rpartition(".")[0]
            if name in modules and name not in seen:
                seen.add(name)
                chains.append([*chain, name])
    return []


def project() -> list[Module]:
    """Every module of the three packages."""
    files = (file for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py")))
    return [Module(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files]


def declared_packages() -> set[str]:
    """The importable names of the dependencies in pyproject.toml; not those that only tests may import."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (
        lines for name, lines in table["optional-dependencies"].items() if name not in ("test", "oracles")
    )
    lines = [*table["dependencies"], *(line for extra in extras for line in extra)]
    names = [re.split(r"[^A-Za-z0-9._-]", line)[0] for line in lines]
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}


MODULES = project()
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)


@each_module
def test_imports_point_one_way(module: Module) -> None:
    assert against_the_direction(module) == []


@each_module
def test_packages_with_a_place_stay_in_it(module: Module) -> None:
    assert out_of_confinement(module) == []


@each_module
def test_every_import_is_a_declared_dependency(module: Module) -> None:
    assert undeclared(module, declared_packages()) == []


@each_module
def test_every_module_says_what_it_holds_and_stays_small(module: Module) -> None:
    assert malformed(module) == []


def test_the_checker_of_certificates_shares_no_code_with_the_solver() -> None:
    modules = {module.name: module for module in MODULES}
    assert set(CHECKER) <= set(modules) and any(inside(name, SOLVER) for name in modules)
    assert path_to_solver(modules) == []


def test_every_layer_was_read() -> None:
    assert {module.name.partition(".")[0] for module in MODULES} == set(LAYERS)


# From here on: the rules see what breaks them.

OFFENDERS = {
    "direct": ("pomdp/x.py", "import harnesses.context", against_the_direction),
    "from": ("harnesses/x.py", "from experiments import runner", against_the_direction),
    "relative": ("pomdp/bounds/x.py", "from ...harnesses import context", against_the_direction),
    "in a function": ("pomdp/x.py", "def f():\n    import experiments", against_the_direction),
    "by its name": (
        "pomdp/x.py",
        "import importlib\nimportlib.import_module('experiments.cli')",
        against_the_direction,
    ),
    "a test": ("experiments/x.py", "from tests.conftest import ROOT", against_the_direction),
    "pomdp_py": ("pomdp/simulate.py", "import pomdp_py", out_of_confinement),
    "pomdp_py in part": ("experiments/x.py", "from pomdp_py.algorithms import pomcp", out_of_confinement),
    "matplotlib": ("pomdp/x.py", "from matplotlib import pyplot", out_of_confinement),
    "tueplots": ("harnesses/x.py", "import tueplots.bundles", out_of_confinement),
    "hypothesis": ("pomdp/model.py", "import hypothesis.strategies as st", out_of_confinement),
    "langgraph": ("harnesses/context.py", "from langgraph.graph import StateGraph", out_of_confinement),
    "langchain": ("pomdp/x.py", "import langchain_core", out_of_confinement),
    "a namesake folder": ("harnesses/desktop/x.py", "import langgraph", out_of_confinement),
    "undeclared": ("pomdp/x.py", "import requests", lambda module: undeclared(module, {"numpy"})),
    "no docstring": ("pomdp/x.py", "x = 1", malformed),
    "vague file": ("pomdp/utils.py", '"""Things."""', malformed),
    "vague folder": ("experiments/common/x.py", '"""Things."""', malformed),
    "too long": ("pomdp/x.py", '"""Things."""\n' + "x = 1\n" * MAX_LINES, malformed),
}


@pytest.mark.parametrize(("path", "text", "rule"), OFFENDERS.values(), ids=OFFENDERS)
def test_a_breach_is_seen(path: str, text: str, rule: Callable[[Module], list[str]]) -> None:
    assert len(rule(Module(path, text))) >= 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("experiments/x.py", "import pomdp.model\nfrom harnesses import context\nimport matplotlib"),
        ("harnesses/x.py", "from pomdp import model\nfrom . import context"),
        ("pomdp/bounds/x.py", "from ..model import POMDP\nimport hypothesis_free"),
        ("pomdp/interop.py", "import pomdp_py"),
        ("harnesses/desk/graph.py", "import langgraph.graph"),
    ],
)
def test_what_is_allowed_is_let_through(path: str, text: str) -> None:
    module = Module(path, '"""Something."""\n' + text + "\n" * (MAX_LINES - text.count("\n") - 1))
    assert [*against_the_direction(module), *out_of_confinement(module), *malformed(module)] == []


@pytest.mark.parametrize(
    "link", ["from pomdp.bounds import solve", "from pomdp import bounds", "from .bounds.solver import solve"]
)
def test_a_roundabout_way_from_the_checker_to_the_solver_is_seen(link: str) -> None:
    sources = {
        "pomdp/certificate.py": "from pomdp.model import POMDP",
        "pomdp/model.py": "import pomdp.interval",
    }
    clean = [Module(path, text) for path, text in sources.items()]
    everything = [*clean, Module("pomdp/interval.py", link), Module("pomdp/bounds/__init__.py", "")]
    assert path_to_solver({module.name: module for module in clean}) == []
    assert len(path_to_solver({module.name: module for module in everything})) == 1


def test_the_public_list_is_not_a_way_to_the_solver_unless_it_is_imported_itself() -> None:
    public = Module("pomdp/__init__.py", "from pomdp.bounds import solve")
    model = Module("pomdp/model.py", "")
    by_module = Module("pomdp/certificate.py", "from pomdp.model import POMDP")
    by_list = Module("pomdp/certificate.py", "from pomdp.model import POMDP\nfrom pomdp import Interval")
    assert path_to_solver({module.name: module for module in (public, model, by_module)}) == []
    assert len(path_to_solver({module.name: module for module in (public, model, by_list)})) == 1
