"""Task: a model, its horizon, source, closed-form values and token sizes; imports pomdp.model, criterion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError

# The value of a task under a criterion where a closed form is known, else None.
ClosedForm = Callable[[Criterion], "Fraction | None"]


@dataclass(frozen=True, eq=False)
class Task:
    """A library model and what is known about it before anything is computed.

    `horizon` is the natural number of steps: enough for the best policy to reach the end, or, where a task
    has no end, a choice; None where the task is a discounted one. `call_tokens` `[A]` and `result_tokens`
    `[O]` are positive sizes of a call and of a result in a transcript, in tokens; they are this project's
    choice, not measurements, and `token_note` gives the reason.
    """

    model: POMDP
    horizon: int | None
    source: str
    call_tokens: tuple[int, ...]
    result_tokens: tuple[int, ...]
    token_note: str
    closed_optimal: ClosedForm
    closed_open_loop: ClosedForm

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit the model."""
        for label, sizes, names in (
            ("call_tokens", self.call_tokens, self.model.actions),
            ("result_tokens", self.result_tokens, self.model.observations),
        ):
            if len(sizes) != len(names) or any(size < 1 for size in sizes):
                raise ModelError(f"{label} needs a positive size for each of {', '.join(names)}; got {sizes}")

    @property
    def name(self) -> str:
        """Canonical name with every argument, such as `tmaze:4:0.9`; `task(name)` gives the same task."""
        return self.model.name

    def criterion(self) -> Criterion:
        """The model's discount with the natural horizon: discount 1 where the model has none."""
        return Criterion.of(self.model, horizon=self.horizon)

    def optimal(self, criterion: Criterion) -> Fraction | None:
        """V* under `criterion`, exact, or None where no closed form is known."""
        return self.closed_optimal(criterion)

    def open_loop(self, criterion: Criterion) -> Fraction | None:
        """W under `criterion`, exact, or None where no closed form is known."""
        return self.closed_open_loop(criterion)


def tabulate(
    *,
    states: Sequence[str],
    actions: Sequence[str],
    observations: Sequence[str],
    step: Callable[[str, str], Mapping[str, Fraction]],
    observe: Callable[[str, str], Mapping[str, Fraction]],
    reward: Callable[[str, str], Fraction],
    start: Mapping[str, Fraction],
    discount: Fraction | None,
    name: str,
) -> POMDP:
    """A model of kernels `step(state, action)`, `observe(action, state reached)`, `reward(state, action)`.

    Each returns exact probabilities by name, or a reward; they are asked once for every pair.
    """
    place = {s: i for i, s in enumerate(states)}
    sign = {o: i for i, o in enumerate(observations)}
    return POMDP.build(
        states=states,
        actions=actions,
        observations=observations,
        T=[[{place[t]: p for t, p in step(s, a).items()} for s in states] for a in actions],
        Z=[[{sign[o]: p for o, p in observe(a, s).items()} for s in states] for a in actions],
        R=[[reward(s, a) for s in states] for a in actions],
        start={place[s]: p for s, p in start.items()},
        discount=discount,
        name=name,
    )


def sure(outcome: str) -> dict[str, Fraction]:
    """The distribution that is certain of one outcome."""
    return {outcome: Fraction(1)}


def uniform(outcomes: Sequence[str]) -> dict[str, Fraction]:
    """The uniform distribution over distinct outcomes."""
    return {outcome: Fraction(1, len(outcomes)) for outcome in outcomes}


def geometric(criterion: Criterion, first: int = 0, stride: int = 1) -> Fraction:
    """Exact sum of discount**t over t = first, first + stride, ... below the horizon."""
    gamma = criterion.discount
    if criterion.horizon is not None:
        return sum((gamma**t for t in range(first, criterion.horizon, stride)), Fraction(0))
    return gamma**first / (1 - gamma**stride)


def lasts(criterion: Criterion, steps: int) -> bool:
    """Whether the criterion counts at least `steps` steps."""
    return criterion.horizon is None or criterion.horizon >= steps
