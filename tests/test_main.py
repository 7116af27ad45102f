"""The joining command line: exit codes, one-line errors, a quick start; commands are small fakes."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.__main__ import BAD_INPUT, BROKEN_PIPE, INTERRUPTED, build_parser, main
from pomdp.model import ModelError


def joining(
    name: str, handler: Callable[[argparse.Namespace], int]
) -> Callable[[argparse._SubParsersAction], None]:
    """An `add_commands` with one command that takes one integer."""

    def add_commands(subparsers: argparse._SubParsersAction) -> None:
        parser = subparsers.add_parser(name, help=f"what {name} does")
        parser.add_argument("number", type=int)
        parser.set_defaults(handler=handler)

    return add_commands


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    """A handler that raises `error`."""

    def handler(args: argparse.Namespace) -> int:
        raise error

    return handler


def run(arguments: list[str], handler: Callable[[argparse.Namespace], int]) -> int:
    """The exit code of a command line whose only command is `fake`."""
    return main(arguments, [joining("fake", handler)])


@pytest.mark.parametrize("code", [0, 1])
def test_the_handlers_exit_code_is_the_commands(code: int) -> None:
    seen = []

    def handler(args: argparse.Namespace) -> int:
        seen.append(args.number)
        return code

    assert run(["fake", "7"], handler) == code
    assert seen == [7]


def test_commands_of_every_package_are_joined(capsys: pytest.CaptureFixture[str]) -> None:
    joins = [joining("one", lambda args: 0), joining("two", lambda args: 1)]
    assert main(["one", "0"], joins) == 0
    assert main(["two", "0"], joins) == 1
    assert main(["--help"], joins) == 0
    printed = capsys.readouterr().out
    assert "what one does" in printed and "what two does" in printed


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([], lambda args: 1) == 0
    assert "what fake does" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ModelError("row [listen,\n  left] sums to 0.98"), "error: row [listen, left] sums to 0.98"),
        (type("TaskError", (ModelError,), {"__module__": "pomdp.library"})("no task"), "error: no task"),
        (
            FileNotFoundError(2, "No such file or directory", "x.pomdp"),
            "error: x.pomdp: No such file or directory",
        ),
        (OSError("disk is full"), "error: disk is full"),
    ],
)
def test_a_users_error_is_one_line_and_exit_2(
    error: Exception, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fake", "1"], raising(error)) == BAD_INPUT
    printed = capsys.readouterr()
    assert printed.err == line + "\n"
    assert printed.out == ""


def test_a_defect_keeps_its_traceback() -> None:
    for error in (ValueError("shapes"), KeyError("k"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "start")):
        with pytest.raises(type(error)):
            run(["fake", "1"], raising(error))


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["fake"], ["fake", "x"], ["fake", "1", "--no-such"], ["--no-such"]]
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments, lambda args: 0) == BAD_INPUT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ") and printed.err.count("\n") == 1
    assert "--help" in printed.err


def test_ctrl_c_is_130_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fake", "1"], raising(KeyboardInterrupt())) == INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


def test_one_name_for_two_commands_is_refused() -> None:
    with pytest.raises((ValueError, argparse.ArgumentError), match="fake"):
        build_parser([joining("fake", lambda args: 0)] * 2)


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    assert run(["--version"], lambda args: 1) == 0
    assert capsys.readouterr().out == version("hpomdp") + "\n"


@pytest.fixture
def no_jax_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset JAX's variables for the test; whatever it sets is put back afterwards."""
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)


def test_a_command_keeps_compiled_code_in_the_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_jax_folder: None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run(["--help"], lambda args: 0) == 0
    assert not list(tmp_path.iterdir()), "help writes nothing"
    assert run(["fake", "1"], lambda args: 0) == 0
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "hpomdp" / "jax")


def test_the_users_own_folder_for_compiled_code_is_kept(
    monkeypatch: pytest.MonkeyPatch, no_jax_folder: None
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "mine")
    assert run(["fake", "1"], lambda args: 0) == 0
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "mine"


def python(code: str, **options: int) -> subprocess.Popen[bytes]:
    """A fresh interpreter running `code`, its standard output buffered as a user's is."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, **options)


@pytest.mark.parametrize("arguments", ["['fake']", "['--help']"])
def test_a_reader_that_left_causes_no_complaint(arguments: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = python(
        f"""
        import sys
        from experiments.__main__ import main

        def add_commands(subparsers):
            subparsers.add_parser("fake").set_defaults(handler=lambda args: print("line") or 0)

        sys.exit(main({arguments}, [add_commands]))
        """,
        stdout=writer,
    )
    os.close(writer)
    assert process.communicate()[1] == b""
    assert process.returncode == BROKEN_PIPE


@pytest.mark.parametrize(
    "statement", ["import pomdp", "from experiments.__main__ import main; main(['--help'])"]
)
def test_help_and_import_load_nothing_heavy(statement: str) -> None:
    code = f"""
        import sys
        {statement}
        heavy = {{"jax", "numba", "pandas", "matplotlib", "statsmodels", "hypothesis", "scipy.optimize"}}
        print(sorted(heavy & set(sys.modules)), file=sys.stderr)
        """
    process = python(code, stdout=subprocess.DEVNULL)
    assert process.communicate()[1] == b"[]\n"
    assert process.returncode == 0
