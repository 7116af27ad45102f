"""Family: tasks that differ in numbers, with ranges and defaults; imports Task and pomdp.rational."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pomdp.library.definition import Task
from pomdp.model import ModelError
from pomdp.rational import read_rational


@dataclass(frozen=True)
class Parameter:
    """An argument: an exact rational in [low, high], whole if `whole`, required if it has no default."""

    name: str
    low: Fraction
    high: Fraction
    example: str
    default: Fraction | None = None
    whole: bool = False

    def read(self, value: Any, family: str) -> Fraction:
        """The argument as an exact rational; ModelError naming family, parameter, range and an example."""
        kind = "a whole number" if self.whole else "a rational"
        wanted = f"{family} needs {self.name} as {kind} in {self.low}..{self.high}, such as {self.example}"
        try:
            number = read_rational(value)
        except ValueError:
            raise ModelError(f"{wanted}; got {value!r}") from None
        if not self.low <= number <= self.high or (self.whole and number.denominator != 1):
            raise ModelError(f"{wanted}; got {value}")
        return number


@dataclass(frozen=True)
class Family:
    """Tasks that differ in numbers alone. Calling it with numbers or their text gives the task.

    `make(name, *arguments)` receives the canonical name and every argument as an exact rational within range.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    make: Callable[..., Task]

    @property
    def usage(self) -> str:
        """How the family is named with its arguments, such as `tmaze:n[:q]`."""
        marks = (f":{p.name}" if p.default is None else f"[:{p.name}]" for p in self.parameters)
        return self.name + "".join(marks)

    def __call__(self, *arguments: Any) -> Task:
        """The task for the arguments in order; a missing one takes its default. Raises ModelError."""
        if len(arguments) > len(self.parameters):
            most = f"takes at most {len(self.parameters)} ({self.usage})" if self.parameters else "takes none"
            raise ModelError(f"{self.name} got {len(arguments)} arguments but {most}")
        given: list[Any] = list(arguments) + [p.default for p in self.parameters[len(arguments) :]]
        missing = next((p for p, value in zip(self.parameters, given, strict=True) if value is None), None)
        if missing is not None:
            example = ":".join([self.name, *(p.example for p in self.parameters)])
            raise ModelError(f"{self.name} needs {missing.name} ({self.usage}); such as {example}")
        values = [p.read(value, self.name) for p, value in zip(self.parameters, given, strict=True)]
        return self.make(":".join([self.name, *map(_text, values)]), *values)


def _text(number: Fraction) -> str:
    """The shortest exact text: a decimal where there is one, else p/q."""
    digits = next((d for d in range(13) if (number * 10**d).denominator == 1), None)
    return str(number) if digits is None else f"{Decimal(int(number * 10**digits)).scaleb(-digits):f}"
