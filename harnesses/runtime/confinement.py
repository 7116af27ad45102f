"""Confinement: a path named by a model, held inside one folder at the moment of use; imports records.

A path is judged twice. As text: relative, no `..`, no control characters, not too long, nothing that some file system
would read as a separator. As names on the disk: from the folder's own descriptor, one component at a time, each opened
relative to its parent and never through a link. What was checked is what is open, so that nothing can be exchanged
between the check and the use.

Decisions. Symbolic links are refused everywhere, also those that point inside: a link says tomorrow something else.
Files with a second name (hard links) are refused: the other name may lie outside. `..` is refused even where it would
stay inside. Devices, pipes and sockets are refused. Mounts inside the folder are its owner's doing and are entered.
Not covered: a program with rights outside that moves an open folder away while a write is under way.
Source: M1 §1.2.5 (an allow-list of argument patterns, enforced before execution).
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harnesses.runtime.records import ToolCall

MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255
MAX_DEPTH = 32
_SLASHES = "/\\\u2215\u2044\u29f8\u2216\u2571"
_READ = os.O_RDONLY | os.O_CLOEXEC
_FOLDER = _READ | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# Without waiting: opening a pipe would otherwise block until somebody writes to it.
_FILE = _READ | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class ConfinementError(ValueError):
    """A call that would leave what it is confined to; `rule` is the short name of what it broke."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(rule, message)
        self.rule, self.message = rule, message

    def __str__(self) -> str:
        return f"denied by the rule {self.rule!r}: {self.message}"


class WorkspaceError(ValueError):
    """An ordinary failure of a tool, such as a file that is not there; says whether to fix, retry or stop."""


def shown(path: str) -> str:
    """The path as a message can carry it: printable ASCII, 80 characters at most."""
    text = ascii(path)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(path)} characters)"


def components(path: str) -> tuple[str, ...]:
    """The names along a relative path; `.` and doubled slashes vanish, so `./a//b` is (a, b) and `.` is ().

    ConfinementError where the text alone breaks a rule. A slash at the end is kept out of the names: `is_folder_name`.
    """
    _check_text(path)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ConfinementError(
            "no ..", f"{shown(path)} climbs; name the file from the workspace, as in src/calc.py"
        )
    if parts and parts[0].startswith("~"):
        raise ConfinementError(
            "no home", f"{shown(path)} names a home folder; write a path such as src/calc.py"
        )
    if len(parts) > MAX_DEPTH:
        raise ConfinementError("length", f"the path has {len(parts)} components; at most {MAX_DEPTH}")
    for part in parts:
        _check_name(part, path)
    return parts


def is_folder_name(path: str) -> bool:
    """Whether the text names a folder: a slash or a dot at its end."""
    return path.rpartition("/")[2] in ("", ".")


def _check_text(path: str) -> None:
    if not isinstance(path, str):
        raise ConfinementError("text", f"a path is a text such as src/calc.py, not {type(path).__name__}")
    if not path:
        raise ConfinementError("empty", "the path is empty; write one such as src/calc.py")
    if "\0" in path:
        raise ConfinementError("no NUL", f"{shown(path)} holds a NUL character")
    if path.startswith("/") or (len(path) > 1 and path[1] == ":" and path[0].isalpha()):
        raise ConfinementError(
            "relative", f"{shown(path)} is absolute; write it from the workspace, as in src/calc.py"
        )
    if "\\" in path:
        raise ConfinementError("no backslash", f"{shown(path)} holds a backslash; folders are separated by /")
    # Cc control, Cf format (direction marks, zero width), Cs lone surrogates, Co private, Cn unassigned; Zl, Zp lines.
    for character in path:
        kind = unicodedata.category(character)
        if kind[0] == "C" or kind in ("Zl", "Zp"):
            raise ConfinementError(
                "printable", f"{shown(path)} holds the invisible character {ascii(character)}"
            )
    if len(path.encode()) > MAX_PATH_BYTES:
        raise ConfinementError("length", f"the path has {len(path.encode())} bytes; at most {MAX_PATH_BYTES}")


def _check_name(name: str, path: str) -> None:
    if len(name.encode()) > MAX_NAME_BYTES:
        raise ConfinementError(
            "length", f"a name in the path has {len(name.encode())} bytes; at most {MAX_NAME_BYTES}"
        )
    # What a file system that folds characters, or a person, would read as a separator or as a climb.
    folded = unicodedata.normalize("NFKC", name)
    if any(mark in folded for mark in _SLASHES) or (folded != name and folded.startswith("..")):
        raise ConfinementError("no look-alike", f"{shown(path)} holds a character that reads as / or as ..")


@dataclass(frozen=True)
class Root:
    """The confining folder: its resolved path, and its device and inode as they were when it was named.

    A folder put in its place later is refused, not entered.
    """

    path: str
    device: int
    inode: int

    @staticmethod
    def of(folder: str | os.PathLike[str]) -> Root:
        """The root at an existing folder; links above it are resolved now, once. WorkspaceError otherwise."""
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise WorkspaceError(
                "a workspace needs a system that opens files relative to folders: Linux, macOS"
            )
        path = os.path.realpath(folder)
        if not os.path.isdir(path):
            raise WorkspaceError(f"the workspace {shown(str(folder))} is not a folder; make it first")
        if path == os.path.dirname(path):
            raise WorkspaceError("the workspace is the whole file system; name a folder such as ./calc")
        found = os.stat(path)
        return Root(path, found.st_dev, found.st_ino)

    def open(self) -> int:
        """A new descriptor of the folder; ConfinementError if another folder stands at its path."""
        try:
            descriptor = os.open(self.path, _FOLDER)
        except OSError as error:
            raise WorkspaceError(f"the workspace cannot be opened ({error.strerror}); stop") from None
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != (self.device, self.inode):
            os.close(descriptor)
            raise ConfinementError("same root", "the workspace was replaced by another folder")
        return descriptor


@contextmanager
def folder(root: Root, parts: tuple[str, ...], make: bool = False) -> Iterator[int]:
    """A descriptor of the folder that `parts` names, reached without links; closed on leaving.

    `make`: folders that are missing are made. FileNotFoundError or NotADirectoryError name the component.
    """
    descriptor = root.open()
    try:
        for part in parts:
            following = _step(descriptor, part, make)
            os.close(descriptor)
            descriptor = following
        yield descriptor
    finally:
        os.close(descriptor)


def _step(parent: int, name: str, make: bool) -> int:
    try:
        return _open_folder(parent, name)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        pass  # somebody else made it meanwhile; what it is, the opening tells
    return _open_folder(parent, name)


def _open_folder(parent: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        # The opening has refused already; looking again only finds the right word for it.
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            look(parent, name)
            raise NotADirectoryError(errno.ENOTDIR, "is a file, not a folder", name) from None
        raise


def look(parent: int, name: str) -> os.stat_result | None:
    """What `name` is in the folder `parent`, None where nothing is; ConfinementError for links and special files."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_kind(found, name)
    return found


def is_folder(found: os.stat_result) -> bool:
    """Whether what was found is a folder."""
    return stat.S_ISDIR(found.st_mode)


def _check_kind(found: os.stat_result, name: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise ConfinementError("no links", f"{shown(name)} is a symbolic link; name the file itself")
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise ConfinementError(
            "regular files", f"{shown(name)} is a pipe, socket or device; name a text file"
        )
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        raise ConfinementError(
            "one name", f"{shown(name)} has a second name (a hard link); write a copy under a new name"
        )


def open_file(parent: int, name: str) -> int:
    """A descriptor for reading the regular file `name` in the folder `parent`; what is open is checked again."""
    look(parent, name)  # before opening: to open a device can already do something
    try:
        descriptor = os.open(name, _FILE, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EMLINK):
            raise ConfinementError(
                "no links", f"{shown(name)} is a link or a special file; name a text file"
            ) from None
        raise
    try:
        found = os.fstat(descriptor)
        _check_kind(found, name)
        if is_folder(found):
            raise IsADirectoryError(errno.EISDIR, "is a folder", name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check(root: Root, path: str) -> None:
    """Judge the path as text and on the disk, as far as it exists; ConfinementError where it breaks a rule.

    Ordinary failures (nothing there, a folder where a file is wanted) pass: the tool reports them.
    """
    parts = components(path)
    try:
        with folder(root, parts[:-1]) as parent:
            if parts:
                look(parent, parts[-1])
    except OSError:
        return


@dataclass(frozen=True)
class PathsUnder:
    """A permission rule: the named argument is a path under the root, reached without links.

    Called with a call, gives the reason of a denial or None.
    """

    root: Root
    argument: str = "path"

    @staticmethod
    def of(folder: str | os.PathLike[str] | Root, argument: str = "path") -> PathsUnder:
        """The rule for an existing folder."""
        return PathsUnder(folder if isinstance(folder, Root) else Root.of(Path(folder)), argument)

    def __call__(self, call: ToolCall) -> str | None:
        """The reason why the call is denied, or None."""
        try:
            check(self.root, call.arguments.get(self.argument, 0))
        except (ConfinementError, WorkspaceError) as error:
            return str(error)
        return None
