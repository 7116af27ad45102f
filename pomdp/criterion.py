"""What is maximised: a discount in [0, 1] and, or instead, a horizon; imports pomdp.model alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pomdp.model import POMDP, ModelError
from pomdp.rational import read_rational

# One stage-indexed value function a step is kept for a horizon, so a longer one would not fit the memory.
MAX_HORIZON = 10_000


@dataclass(frozen=True)
class Criterion:
    """Expected sum of `discount**t * reward_t` over t < `horizon`, or over all t when the horizon is None.

    `discount` is exact, `0 <= discount < 1` without a horizon and `0 <= discount <= 1` with one.
    Raises ModelError otherwise. Source: design of the formal core, section 1.
    """

    discount: Fraction
    horizon: int | None = None

    def __post_init__(self) -> None:
        """Refuse what has no value."""
        if not 0 <= self.discount <= 1:
            raise ModelError(f"discount {self.discount} is outside [0, 1]; give one such as 0.95")
        if self.horizon is None and self.discount < 1 and float(self.discount) == 1.0:
            raise ModelError(f"discount {self.discount} is too close to 1 for doubles; give --horizon N")
        if self.horizon is None and self.discount == 1:
            raise ModelError(
                "discount 1 without a horizon has no finite value; give --horizon N or a --discount below 1"
            )
        if self.horizon is not None and not 1 <= self.horizon <= MAX_HORIZON:
            raise ModelError(f"horizon {self.horizon} is outside 1..{MAX_HORIZON}; give one such as 10")

    @classmethod
    def of(cls, model: POMDP, discount: Any = None, horizon: int | None = None) -> Criterion:
        """The criterion for `model`: its own discount unless `discount` is given, and the horizon if any.

        A horizon where neither gives a discount means discount 1. Raises ModelError where there is no value.
        """
        if discount is not None:
            try:
                return cls(read_rational(discount), horizon)
            except ValueError as error:
                raise error if isinstance(error, ModelError) else ModelError(f"discount: {error}") from None
        if model.exact.discount is not None:
            return cls(model.exact.discount, horizon)
        if horizon is not None:
            return cls(Fraction(1), horizon)
        where = f"{model.name} has" if model.name else "the model has"
        raise ModelError(f"{where} no discount; give --discount G (such as 0.95) or --horizon N")

    @property
    def gamma(self) -> float:
        """The discount as a float."""
        return float(self.discount)

    def tail(self, steps: int) -> float:
        """Sum of discount**t over the t >= `steps` that count: what is left of one reward unit a step."""
        if self.horizon is None:
            return self.gamma**steps / (1.0 - self.gamma)
        return float(sum(self.gamma**t for t in range(steps, self.horizon)))

    @property
    def scale(self) -> float:
        """Sum of all discount**t: the value of one reward unit a step."""
        return self.tail(0)

    def text(self) -> str:
        """A short canonical form, such as `discount 19/20` or `discount 1, horizon 10`."""
        return f"discount {self.discount}" + ("" if self.horizon is None else f", horizon {self.horizon}")
