"""Commands: an allow-list of programs and of their arguments, read without a shell; imports confinement, records.

A command is a text that a model wrote. It is split as a shell would split it and then never given to one. What is not
on the list is denied: a program by its exact name, an option by its exact spelling and the pattern of its value, a path
by the rules of `confinement`.
Source: M1 §1.2.5, §1.3 (run_tests is allowed only for pytest).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from harnesses.runtime.confinement import ConfinementError, Root, WorkspaceError, check, shown
from harnesses.runtime.records import ToolCall

MAX_COMMAND = 2000
MAX_ARGUMENTS = 50
# Outside quotes these mean something to a shell, and nothing here.
_SHELL = re.compile(r"[;&|<>$`\\!*?(){}#\n\r^]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PATH = re.compile(r"(?P<file>[^:]*)(?P<node>(::[\w.\[\], -]+)*)")


@dataclass(frozen=True)
class Command:
    """One allowed program: `flags` an expression for options without a value, `values` one for each option's value.

    What is no option is a path, perhaps with test names after `::`.
    """

    name: str
    flags: str
    values: Mapping[str, str] = field(default_factory=dict)


# Not on the list, for what they would do: -p, -c, -o, --rootdir, --confcutdir, --import-mode, --pyargs (load code or
# settings from elsewhere), --basetemp (empties a folder), --junit-xml, --log-file, --debug (write files), --pdb,
# --pastebin (send), -n and --tx (start processes), @file (reads further options from a file).
_EXPRESSION = r"[\w .()\[\],-]+"
PYTEST = Command(
    "pytest",
    flags=r"-[qvxsl]+|--verbose|--quiet|--exitfirst|--showlocals|--collect-only|--co|--no-header|--no-summary"
    r"|-r[fEsxXpPwaAN]+|--tb=(auto|long|short|line|native|no)|--maxfail=\d{1,4}|--durations=\d{1,4}"
    r"|--capture=(fd|sys|no)",
    values={
        "-k": _EXPRESSION,
        "-m": _EXPRESSION,
        "--tb": "auto|long|short|line|native|no",
        "--maxfail": r"\d{1,4}",
    },
)


@dataclass(frozen=True)
class AllowedCommands:
    """A permission rule: the named argument is a command of the list, its paths under the root.

    Called with a call, gives the reason of a denial or None.
    """

    root: Root
    commands: tuple[Command, ...] = (PYTEST,)
    argument: str = "command"

    def __call__(self, call: ToolCall) -> str | None:
        """The reason why the call is denied, or None."""
        try:
            self.split(call.arguments.get(self.argument, 0))
        except (ConfinementError, WorkspaceError) as error:
            return str(error)
        return None

    def split(self, text: str) -> list[str]:
        """The words of an allowed command, the program first; ConfinementError names the rule that is broken."""
        words = _words(text)
        command = next((command for command in self.commands if command.name == words[0]), None)
        if command is None:
            allowed = ", ".join(command.name for command in self.commands)
            raise ConfinementError(
                "allow-list", f"the program {shown(words[0])} is not allowed; allowed: {allowed}"
            )
        self._check_arguments(command, words[1:])
        return words

    def _check_arguments(self, command: Command, words: list[str]) -> None:
        waiting = iter(words)
        for word in waiting:
            if word.startswith("@"):
                raise ConfinementError("options", f"{shown(word)} would read options from a file")
            if not word.startswith("-"):
                self._check_path(word)
            elif word in command.values:
                value = next(waiting, "")
                if value.startswith(("-", "@")) or not re.fullmatch(command.values[word], value, re.ASCII):
                    raise ConfinementError("options", f"{word} does not take the value {shown(value)}")
            elif not re.fullmatch(command.flags, word, re.ASCII):
                raise ConfinementError("options", f"{command.name} is not allowed the option {shown(word)}")

    def _check_path(self, word: str) -> None:
        found = _PATH.fullmatch(word)
        if found is None or not found["file"]:
            raise ConfinementError(
                "paths", f"{shown(word)} is no path such as test_calc.py or test_calc.py::test_add"
            )
        check(self.root, found["file"])


def _words(text: str) -> list[str]:
    if not isinstance(text, str):
        raise ConfinementError("text", f"a command is a text such as 'pytest -q', not {type(text).__name__}")
    if len(text) > MAX_COMMAND:
        raise ConfinementError("length", f"the command has {len(text)} characters; at most {MAX_COMMAND}")
    if not text.isprintable():
        raise ConfinementError("printable", f"the command {shown(text)} holds an invisible character")
    if mark := _SHELL.search(_QUOTED.sub("", text)):
        raise ConfinementError(
            "no shell", f"{mark[0]!r} has no meaning: one command, without a shell, as in pytest -q"
        )
    try:
        words = shlex.split(text)
    except ValueError:
        raise ConfinementError(
            "no shell", f"the command {shown(text)} has a quote without its partner"
        ) from None
    if not words or len(words) > MAX_ARGUMENTS:
        raise ConfinementError("length", f"the command has {len(words)} words; 1 to {MAX_ARGUMENTS}")
    return words
