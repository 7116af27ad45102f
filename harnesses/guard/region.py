"""The three regions of a guard and the rule that cuts reports into them; imports pomdp.rational and numpy only.

A float stands for its shortest decimal, as everywhere in this project: a report typed as 0.7 meets the threshold
7/10, although the binary fraction next to 0.7 lies below it. One report and an array of them are cut alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from pomdp.rational import read_rational


class GuardError(ValueError):
    """Reports, labels, costs or thresholds that make no guard, in one line with an example of right ones."""


class Region(Enum):
    """What a guard does with a call, the more autonomous first. It has no truth value: compare it with a member.

    A gate that is asked `if guard(p):` would let a call through for every answer, or for none.
    """

    ACT = "act"
    ASK = "ask"
    ESCALATE = "escalate"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self} is neither true nor false; write `region is Region.ACT`")


REGIONS = tuple(Region)
"""Region of each code that `regions` gives: 0 act, 1 ask, 2 escalate."""


@dataclass(frozen=True)
class Thresholds:
    """Act where p >= tau_act, else ask where p >= tau_esc, else escalate; both exact, in [0, 1].

    `tau_act` None: never act. Numbers are read exactly. Raises GuardError unless tau_esc <= tau_act.
    Source: M14 Eq. 4.
    """

    tau_act: Any
    tau_esc: Any

    def __post_init__(self) -> None:
        if self.tau_act is not None:
            object.__setattr__(self, "tau_act", probability(self.tau_act, "tau_act"))
        object.__setattr__(self, "tau_esc", probability(self.tau_esc, "tau_esc"))
        if self.tau_act is not None and self.tau_esc > self.tau_act:
            raise GuardError(
                f"tau_esc {self.tau_esc} is above tau_act {self.tau_act}; where asking never pays they are equal"
            )

    @property
    def collapsed(self) -> bool:
        """Whether no report is asked about."""
        return self.tau_act == self.tau_esc

    @classmethod
    def capped(cls, tau_act: Any, tau_esc: Any) -> Thresholds:
        """These thresholds, a tau_esc above tau_act lowered to it: nothing is asked about then."""
        if tau_act is None:
            return cls(None, tau_esc)
        act = probability(tau_act, "tau_act")
        return cls(act, min(act, probability(tau_esc, "tau_esc")))

    def json(self) -> dict[str, Any]:
        """Both thresholds as floats and as exact text, None where the guard never acts."""
        act = self.tau_act
        return {
            "tau_act": None if act is None else float(act),
            "tau_esc": float(self.tau_esc),
            "tau_act_exact": None if act is None else str(act),
            "tau_esc_exact": str(self.tau_esc),
            "collapsed": self.collapsed,
        }


def region(p: Any, thresholds: Thresholds) -> Region:
    """The region of one report p in [0, 1]: an int, Fraction, float or text. Raises GuardError for anything else."""
    report = probability(p, "report p")
    if thresholds.tau_act is not None and report >= thresholds.tau_act:
        return Region.ACT
    return Region.ASK if report >= thresholds.tau_esc else Region.ESCALATE


def regions(p: Any, thresholds: Thresholds) -> Any:
    """Codes int8 `[...]` of reports `[...]` in [0, 1], in numpy or, inside or outside jit, in JAX.

    Agrees with `region` on every number of the array's type (float16, float32, float64), ties included. The
    reports are not checked: `Scores` does that at the door.
    """
    if not hasattr(p, "__array_namespace__"):
        p = np.asarray(p, dtype=np.float64)
    if p.dtype.kind in "biu":
        p = p.astype(float)  # 0 and 1: whole numbers between which no cut can be found
    array = p.__array_namespace__()
    return codes(p, cut(thresholds.tau_act, p.dtype), cut(thresholds.tau_esc, p.dtype), array)


def codes(p: Any, act: Any, esc: Any, array: Any = np) -> Any:
    """Codes int8 of reports from cuts of their own type, broadcast; `array` is numpy or jax.numpy."""
    one, two, none = (array.asarray(code, dtype=array.int8) for code in (1, 2, 0))
    acts, asks = (_reaches(p, tau, array) for tau in (act, esc))
    return array.where(acts, none, array.where(asks, one, two))


def _reaches(p: Any, tau: Any, array: Any) -> Any:
    """Whether p >= tau, subnormal numbers included, which compiled comparisons take for 0."""
    if array is np:
        return p >= tau
    # The bits of numbers from 0 up, the sign left out, are ordered as they are. NaN reaches nothing.
    kind = np.dtype(f"int{8 * p.dtype.itemsize}")
    bits, least = (x.view(kind) & np.iinfo(kind).max for x in (p, tau))
    return (p >= tau) & (bits >= least)


def cut(tau: Any, dtype: Any = np.float64) -> np.floating:
    """The least number of `dtype` whose shortest decimal reaches `tau`; infinity where `tau` is None.

    GuardError for a type that is no float.
    """
    kind = np.dtype(dtype).type
    if not issubclass(kind, np.floating):
        raise GuardError(f"{np.dtype(dtype)} holds no probability; compare in a float type such as float32")
    if tau is None:
        return kind(math.inf)
    tau = probability(tau, "threshold")
    found = kind(float(tau))
    while _decimal(found) < tau:
        found = np.nextafter(found, kind(2))
    # The type's own rounding of a float64 may have gone one step too far.
    while found > 0 and _decimal(np.nextafter(found, kind(-1))) >= tau:
        found = np.nextafter(found, kind(-1))
    return found


def probability(value: Any, where: str) -> Fraction:
    """An exact number from 0 to 1, a float read by the shortest decimal of its own type; GuardError otherwise."""
    try:
        found = _decimal(value) if isinstance(value, np.floating) else read_rational(value)
    except ValueError as error:
        raise GuardError(f"{where}: {error}") from error
    if not 0 <= found <= 1:
        raise GuardError(f"{where} is {value}, not a probability; give one from 0 to 1, such as 31/32")
    return found


def at_least(least: int, value: Any, where: str, example: str) -> Fraction:
    """An exact number from `least` up, a float read by its shortest decimal; GuardError otherwise."""
    try:
        found = read_rational(value)
    except ValueError as error:
        raise GuardError(f"{where}: {error}") from error
    if found < least:
        raise GuardError(f"{where} is {value}; give {least} or more, such as {example}")
    return found


def _decimal(value: Any) -> Fraction:
    """The shortest decimal that reads back as `value` in its own type."""
    if not np.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return Fraction(str(value))
