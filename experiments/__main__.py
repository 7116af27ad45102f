"""The command `hpomdp`: joins the commands of the packages, and turns a user's error into one line.

Each package's `cli.py` has `add_commands(subparsers)`, which adds its commands with argparse and gives each
`handler=function(args) -> exit code`. What a command needs beyond the standard library is imported inside its
handler, so that `hpomdp --help` appears at once. May import every package's `cli.py` and pomdp.cache_folder.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pomdp.cache_folder import cache_folder

DONE, BAD_INPUT = 0, 2
# What a shell reports for a command ended by SIGINT and by SIGPIPE.
INTERRUPTED, BROKEN_PIPE = 130, 141

PROJECT = ("pomdp", "harnesses", "experiments")

Join = Callable[[Any], None]
"""Adds commands to what `ArgumentParser.add_subparsers` returned."""


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose error is one line; the parsers of its commands are of the same class."""

    def error(self, message: str) -> NoReturn:
        """Print the error and where help is, and exit with code 2."""
        self.exit(BAD_INPUT, f"error: {one_line(message)} (see {self.prog} --help)\n")


class ShowVersion(argparse.Action):
    """Prints the installed version; looks it up only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print and exit with code 0."""
        from importlib.metadata import version

        print(version("hpomdp"))
        parser.exit(DONE)


def package_commands() -> tuple[Join, ...]:
    """The `add_commands` of every package that has commands, in the order of `--help`."""
    import experiments.cli
    import harnesses.cli
    import pomdp.cli

    return pomdp.cli.add_commands, harnesses.cli.add_commands, experiments.cli.add_commands


def build_parser(joins: Sequence[Join]) -> argparse.ArgumentParser:
    """The parser with the commands of all `joins`; ValueError when two give the same name."""
    parser = OneLineParser(
        prog="hpomdp",
        description="Certified values of information, feedback and harnesses for finite POMDPs.",
        epilog="Exit codes: 0 done, 1 a finding such as a failed check, 2 bad input.",
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for join in joins:
        join(commands)
    return parser


def keep_compiled_code() -> None:
    """Let JAX keep what it compiles in the cache folder, here and in child processes, unless the user chose.

    JAX reads its variables when it is first imported, which no command has done yet. A program that uses the
    packages as a library keeps its own setting: only the command decides for the whole process.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = cache_folder("jax")
    if folder is not None:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        # Simulators compile in about this time, below the default of one second.
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


def one_line(message: object) -> str:
    """`message` as text without line breaks or runs of spaces."""
    return " ".join(str(message).split())


def is_for_the_user(error: ValueError) -> bool:
    """Whether the project raised `error` on purpose: its class is ours, not a builtin or a library's."""
    return type(error).__module__.partition(".")[0] in PROJECT


def describe(error: Exception) -> str:
    """One line for `error`; an error of the system names the file first."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return one_line(f"{error.filename}: {error.strerror}")
    return one_line(error) or type(error).__name__


def close_quietly() -> None:
    """Point standard output at nothing, so that the interpreter's last flush cannot fail on a closed pipe."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def run(arguments: Sequence[str] | None, joins: Sequence[Join] | None) -> int:
    """Parse, call the command's handler, and return its exit code; help alone when no command is named."""
    parser = build_parser(package_commands() if joins is None else joins)
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as stop:  # argparse ends so after an error, --help and --version
        return int(stop.code or DONE)
    if parsed.command is None:
        parser.print_help()
        return DONE
    keep_compiled_code()
    return parsed.handler(parsed)


def main(arguments: Sequence[str] | None = None, joins: Sequence[Join] | None = None) -> int:
    """Run one command and return its exit code.

    arguments: without the program's name; None reads the command line.
    joins: the packages' `add_commands`; None takes all. A ValueError that is not the project's own is a
    defect and keeps its traceback.
    """
    try:
        code = run(arguments, joins)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        close_quietly()
        return BROKEN_PIPE
    except (ValueError, OSError) as error:
        if isinstance(error, ValueError) and not is_for_the_user(error):
            raise
        print(f"error: {describe(error)}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
