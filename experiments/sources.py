"""Which source files computed a record, and one hash of them. Imports the standard library only.

A record counts as current while its hash equals that of the study's file plus every project module the file
imports, directly or not. What only draws or tabulates is left out, `analyse`, `figure`, `headline`, `TABLES` and
what they alone refer to: changing the look of a figure must not throw measurements away.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("pomdp", "harnesses", "experiments")
PRESENTATION = frozenset(
    {"analyse", "figure", "headline", "TABLES", "QUESTION", "METRIC", "CONTRAST", "PREDICTED_SIGN"}
)
COMPUTING = ("cells", "run")


def source_hash(study_file: Path, root: Path = PROJECT) -> str:
    """SHA-256 over the study's file without its presentation, and all files that `source_files` lists."""
    digest = hashlib.sha256()
    computing = _without_presentation(study_file.read_text(encoding="utf-8"), str(study_file))
    _add(digest, "study", computing.encode())
    for path in source_files(study_file, root):
        _add(digest, path.relative_to(root.resolve()).as_posix(), path.read_bytes())
    return digest.hexdigest()


def source_files(study_file: Path, root: Path = PROJECT) -> list[Path]:
    """Project modules that the study's file imports, directly or through others, sorted, without itself.

    The imports are read from the text, so an import inside a function counts; importing `a.b` also runs `a`.
    """
    root = root.resolve()
    text = _without_presentation(study_file.read_text(encoding="utf-8"), str(study_file))
    own = _module_name(study_file.resolve(), root)
    waiting = _imports(text, own, study_file.name == "__init__.py")
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        path = _module_file(name, root)
        if path is None:
            waiting |= _late_home(name, root) - found.keys()
            continue
        if name in found or path == study_file.resolve():
            continue
        found[name] = path
        waiting |= _imports(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
    return sorted(set(found.values()))


def _add(digest: hashlib._Hash, name: str, content: bytes) -> None:
    # Lengths go in as well, so that moving text from one file to the next changes the hash.
    digest.update(f"{name}\0{len(content)}\0".encode())
    digest.update(content)


def _without_presentation(text: str, name: str) -> str:
    """The text without the statements that only presentation needs: it, and what nothing else refers to."""
    statements = ast.parse(text, name).body
    makers: dict[str, list[ast.stmt]] = {}
    for node in statements:
        for made in _made(node):
            makers.setdefault(made, []).append(node)
    shown = _needed([node for root in sorted(PRESENTATION) for node in makers.get(root, [])], makers)
    computing = _needed([node for node in statements if node not in shown], makers)
    computing |= _needed([node for root in COMPUTING for node in makers.get(root, [])], makers)
    lines = text.splitlines(keepends=True)
    for node in statements:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or (node in shown and node not in computing):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            for number in range(first - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "".join(lines)


def _made(node: ast.stmt) -> set[str]:
    """Names that a top-level statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {target.id for target in targets if isinstance(target, ast.Name)}
    return set()


def _needed(roots: list[ast.stmt], makers: dict[str, list[ast.stmt]]) -> set[ast.stmt]:
    """These statements and all that define a name they use, directly or not."""
    found: set[ast.stmt] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            waiting += [maker for name in used for maker in makers.get(name, [])]
    return found


def _imports(text: str, module: str | None, package: bool) -> set[str]:
    """Dotted names of project modules that the text may import, parents included."""
    names: set[str] = set()
    tree = _WithoutTypes().visit(ast.parse(text))
    packages = {name: name for name in PACKAGES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
            packages |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, package)
            if base:
                names.add(base)
                names.update(f"{base}.{alias.name}" for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in packages:
            names.add(f"{packages[node.value.id]}.{node.attr}")
    return {
        ".".join(parts[: length + 1])
        for parts in (name.split(".") for name in names)
        if parts[0] in PACKAGES
        for length in range(len(parts))
    }


class _WithoutTypes(ast.NodeTransformer):
    """Drops the blocks that only a type checker reads: they compute nothing."""

    def visit_If(self, node: ast.If) -> Any:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return [self.visit(part) for part in node.orelse]
        return self.generic_visit(node)


def _late_home(name: str, root: Path) -> set[str]:
    """The module that a package imports on the first use of a name, as its `__init__` lists it: {name: module}."""
    package, _, last = name.rpartition(".")
    path = _module_file(package, root) if package else None
    if path is None or path.name != "__init__.py":
        return set()
    homes: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == last and isinstance(value, ast.Constant):
                    homes.add(str(value.value))
    return homes


def _absolute(node: ast.ImportFrom, module: str | None, package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    if module is None:
        return ""
    parts = module.split(".")
    # One dot means the module's own package, which for a package's __init__ is the module itself.
    parts = parts[: len(parts) - node.level + (1 if package else 0)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _module_name(path: Path, root: Path) -> str | None:
    if not path.is_relative_to(root):
        return None
    parts = list(path.relative_to(root).with_suffix("").parts)
    if not parts or parts[0] not in PACKAGES:
        return None
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module_file(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    for candidate in (base / "__init__.py", base.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None
