"""Which source files computed a record, and one hash of them. Imports the standard library only.

A record counts as current while its hash equals that of the study's file plus every project module the file
imports, directly or not. What only draws or tabulates (`analyse`, `figure`, `headline` of the study) is left
out: changing the look of a figure must not throw measurements away.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("pomdp", "harnesses", "experiments")
PRESENTATION = frozenset({"analyse", "figure", "headline"})


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
        if name in found or path is None or path == study_file.resolve():
            continue
        found[name] = path
        waiting |= _imports(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
    return sorted(set(found.values()))


def _add(digest: hashlib._Hash, name: str, content: bytes) -> None:
    # Lengths go in as well, so that moving text from one file to the next changes the hash.
    digest.update(f"{name}\0{len(content)}\0".encode())
    digest.update(content)


def _without_presentation(text: str, name: str) -> str:
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text, name).body:
        if isinstance(node, ast.FunctionDef) and node.name in PRESENTATION:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for number in range(first - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "".join(lines)


def _imports(text: str, module: str | None, package: bool) -> set[str]:
    """Dotted names of project modules that the text may import, parents included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, package)
            if base:
                names.add(base)
                names.update(f"{base}.{alias.name}" for alias in node.names)
    return {
        ".".join(parts[: length + 1])
        for parts in (name.split(".") for name in names)
        if parts[0] in PACKAGES
        for length in range(len(parts))
    }


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
