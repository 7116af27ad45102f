"""Workspace: three tools over one folder, read_file, write_file and run_tests; imports confinement,
commands, landlock, process.

The methods are plain typed functions, so that their signatures are their schemas. `permissions` holds the rule of each,
for the check before execution; every rule is enforced again at the moment of use, where it cannot be outrun.

The rules hold a model to its arguments. They do not hold the code that it writes and `run_tests` executes: that code
is bounded in time, output, file size and environment, and on Linux with Landlock it can neither read nor write outside
the folder, the interpreter and the system's libraries, nor signal other processes, nor open TCP connections
(`landlock.version`). Elsewhere it has the rights of its user: run such harnesses in a container.
Source: M1 §1.3 (the three tools), §1.2.5 (their permissions).
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from harnesses.runtime import confinement, landlock
from harnesses.runtime.commands import AllowedCommands
from harnesses.runtime.confinement import PathsUnder, Root, WorkspaceError, components, shown
from harnesses.runtime.process import OUTPUT_LIMIT, Finished, minimal_environment, run_command
from harnesses.runtime.records import ToolCall

LARGEST_FILE = 1_000_000
DEADLINE = 60.0
FILE_LIMIT = 64 * 2**20  # of the largest file that a test may write
Rule = Callable[[ToolCall], str | None]

# The workspace's settings are not read: they could add any option (addopts = -p ..., --basetemp=...). No files are
# left beside the tests; compiled ones would also hide a correction made within the clock's grain.
_PYTEST = ["-I", "-B", "-m", "pytest", "-c", os.devnull, "--rootdir=.", "--confcutdir=."]
_PYTEST += ["-p", "no:cacheprovider", "--color=no"]
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


@dataclass(frozen=True)
class Workspace:
    """A folder that tools are confined to: `root` found by `Workspace.at`; sizes in bytes, `deadline` in seconds.

    `readable`: further folders that tests may read, such as a package installed elsewhere.
    """

    root: Root
    largest_file: int = LARGEST_FILE
    deadline: float = DEADLINE
    output_limit: int = OUTPUT_LIMIT
    readable: tuple[str, ...] = ()

    @staticmethod
    def at(folder: str | os.PathLike[str], **settings: object) -> Workspace:
        """The workspace at an existing folder; WorkspaceError if it is none, or the whole file system."""
        return Workspace(Root.of(folder), **settings)  # type: ignore[arg-type]

    @property
    def permissions(self) -> dict[str, Rule]:
        """The rule of each tool: called with a call, the reason of a denial or None."""
        paths = PathsUnder(self.root, "path")
        return {"read_file": paths, "write_file": paths, "run_tests": AllowedCommands(self.root)}

    def read_file(self, path: str) -> str:
        """The text of a file of the workspace; the path is relative, as in src/calc.py."""
        parts = _file_parts(path)
        with _ordinary(path), confinement.folder(self.root, parts[:-1]) as parent:
            descriptor = confinement.open_file(parent, parts[-1])
            with os.fdopen(descriptor, "rb") as file:
                content = file.read(self.largest_file + 1)
        if len(content) > self.largest_file:
            raise WorkspaceError(
                f"{shown(path)} is larger than {self.largest_file} bytes; read a smaller file"
            )
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WorkspaceError(
                f"{shown(path)} is no UTF-8 text (byte {error.start}); read a text file"
            ) from None

    def write_file(self, path: str, content: str) -> str:
        """Write a file of the workspace whole, over what was there; missing folders are made. The path is relative."""
        parts = _file_parts(path)
        try:
            data = content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise WorkspaceError(
                f"character {error.start} of the content is half a pair; write text"
            ) from None
        if len(data) > self.largest_file:
            raise WorkspaceError(f"the content has {len(data)} bytes; write at most {self.largest_file}")
        with _ordinary(path), confinement.folder(self.root, parts[:-1], make=True) as parent:
            _replace(parent, parts[-1], data)
        return f"wrote {len(data)} bytes to {'/'.join(parts)}"

    def run_tests(self, command: str) -> dict[str, int | str]:
        """Run pytest in the workspace, as in `pytest -q test_calc.py`; gives exit_code and stdout."""
        finished = self.run(command)
        if finished.ended == "deadline":
            raise TimeoutError(
                f"the tests ran longer than {self.deadline:g} s and were ended; {_tail(finished)}"
            )
        if finished.exit_code is None:
            raise WorkspaceError(f"the tests ended the process that ran them; fix them. {_tail(finished)}")
        return {"exit_code": finished.exit_code, "stdout": finished.output}

    def run(self, command: str) -> Finished:
        """Run an allowed command and say everything about how it ended; ConfinementError for one that is not."""
        words = AllowedCommands(self.root).split(command)
        with _scratch() as home, _opened(self.root) as folder:
            rules = landlock.ruleset([folder, home, *_DEVICES], [*_SYSTEM, *_interpreter(), *self.readable])
            # Plug-ins of this interpreter are the harness's, not the workspace's.
            environment = {**minimal_environment(home), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            argv = [sys.executable, *_PYTEST, *words[1:]]
            try:
                return run_command(
                    argv,
                    folder,
                    self.deadline,
                    self.output_limit,
                    environment,
                    rules=rules,
                    file_limit=FILE_LIMIT,
                )
            finally:
                if rules is not None:
                    os.close(rules)


def _file_parts(path: str) -> tuple[str, ...]:
    parts = components(path)
    if not parts or confinement.is_folder_name(path):
        raise WorkspaceError(f"{shown(path)} names a folder; name a file, as in src/calc.py")
    return parts


@contextmanager
def _ordinary(path: str) -> Iterator[None]:
    """Failures of the system as sentences that say what to do next."""
    try:
        yield
    except FileNotFoundError:
        raise WorkspaceError(
            f"there is no file {shown(path)}; check the name, or write the file first"
        ) from None
    except NotADirectoryError as error:
        raise WorkspaceError(
            f"in {shown(path)} {shown(error.filename or '')} is a file; correct the path"
        ) from None
    except IsADirectoryError:
        raise WorkspaceError(f"{shown(path)} is a folder; name a file in it") from None
    except PermissionError:
        raise WorkspaceError(f"the system does not permit this for {shown(path)}; use another file") from None
    except OSError as error:
        raise WorkspaceError(f"{shown(path)}: {error.strerror}; retry once, then stop") from None


def _replace(parent: int, name: str, data: bytes) -> None:
    """Write `name` in the folder through a temporary file that takes its place; the old file or the new, never half."""
    found = confinement.look(parent, name)
    if found is not None and confinement.is_folder(found):
        raise IsADirectoryError
    mode = 0o644 if found is None else found.st_mode & 0o777
    temporary = f".partial-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        # A link that appeared meanwhile is replaced by this, not followed.
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise
    os.fsync(parent)


@contextmanager
def _opened(root: Root) -> Iterator[int]:
    descriptor = root.open()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _scratch() -> Iterator[str]:
    """A folder for one run's temporary files, removed after it."""
    folder = tempfile.mkdtemp(prefix="run-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _interpreter() -> set[str]:
    paths = sysconfig.get_paths()
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable))}
    found |= {os.path.realpath(place) for place in found} | {
        paths["stdlib"],
        paths["purelib"],
        paths["platlib"],
    }
    return found - {os.path.sep}


def _tail(finished: Finished) -> str:
    return f"the end of their output:\n{finished.output[-2000:]}"
