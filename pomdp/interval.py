"""Closed intervals of floats with outward rounding; imports nothing of this project."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Interval:
    """The set of reals x with `lower <= x <= upper`; arithmetic rounds both ends outward.

    `certified` says whether both ends passed an exact check; a result is certified when all its parts are.
    Raises ValueError where the ends cross or one is not a number.
    """

    lower: float
    upper: float
    certified: bool = False

    def __post_init__(self) -> None:
        """Refuse an empty interval: it would mean that a bound is wrong."""
        if not self.lower <= self.upper:
            raise ValueError(
                f"interval [{self.lower}, {self.upper}] is empty: its lower end is above its upper end"
            )

    @classmethod
    def of(cls, lower: Fraction, upper: Fraction, certified: bool = False) -> Interval:
        """The smallest float interval around two exact ends."""
        return cls(round_down(lower), round_up(upper), certified)

    @property
    def width(self) -> float:
        """Upper minus lower end, rounded up."""
        return math.nextafter(self.upper - self.lower, math.inf) if self.upper > self.lower else 0.0

    @property
    def middle(self) -> float:
        """A point between the ends."""
        return self.lower + (self.upper - self.lower) / 2

    def contains(self, value: float | Fraction) -> bool:
        """Whether the value lies between the ends; exact for a Fraction."""
        return Fraction(self.lower) <= value <= Fraction(self.upper)

    def meets(self, other: Interval) -> bool:
        """Whether the two intervals share a point."""
        return self.lower <= other.upper and other.lower <= self.upper

    def __add__(self, other: Interval) -> Interval:
        """All sums of a point of each."""
        return Interval(
            _down(self.lower, other.lower), _up(self.upper, other.upper), self.certified and other.certified
        )

    def __neg__(self) -> Interval:
        """All negated points."""
        return Interval(-self.upper, -self.lower, self.certified)

    def __sub__(self, other: Interval) -> Interval:
        """All differences of a point of each."""
        return self + (-other)

    def scale(self, factor: Fraction) -> Interval:
        """All points times one exact factor."""
        ends = sorted((Fraction(self.lower) * factor, Fraction(self.upper) * factor))
        return Interval.of(ends[0], ends[1], self.certified)

    def at_least(self, floor: float) -> Interval:
        """The part at or above `floor`, for a quantity known never to be below it; a point where that is empty."""
        return Interval(max(self.lower, floor), max(self.upper, floor), self.certified)

    def between(self, low: Interval, high: Interval) -> Interval:
        """The part that a quantity known to lie between two others leaves; a point where rounding left none."""
        lower, upper = max(self.lower, low.lower), min(self.upper, high.upper)
        return Interval(min(lower, upper), upper, self.certified and low.certified and high.certified)

    def json(self) -> dict[str, float]:
        """The form every command prints."""
        return {"lower": self.lower, "upper": self.upper}

    def __str__(self) -> str:
        """Both ends to ten significant digits, rounded outward."""
        return f"[{_digits(self.lower, math.floor)}, {_digits(self.upper, math.ceil)}]"


def round_down(value: Fraction) -> float:
    """The largest float not above an exact value."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def round_up(value: Fraction) -> float:
    """The smallest float not below an exact value."""
    return -round_down(-value)


def _down(a: float, b: float) -> float:
    return round_down(Fraction(a) + Fraction(b))


def _up(a: float, b: float) -> float:
    return round_up(Fraction(a) + Fraction(b))


def _digits(value: float, direction: object) -> str:
    """`value` to ten significant digits, rounded by `direction` (floor or ceil)."""
    if value == 0:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(abs(value))) - 9)
    steps = direction(Fraction(value) / unit)  # type: ignore[operator]
    return f"{float(steps * unit):.10g}"
