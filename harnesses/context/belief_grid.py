"""BeliefGrid: a Bayes filter inside the harness, its belief kept on a grid; imports pomdp.belief.

Every message is replaced by the rounded belief (summarisation). A finer grid is not always better. Source:
design of the formal core, section 2; M1 §1.5.1, where the context stands in for the belief.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from harnesses.context.context_map import Memory
from harnesses.context.message import Context, Event, Removal, note, removed
from pomdp.belief import exact_measures, exact_step, normalise
from pomdp.model import POMDP, ModelError

FALLBACKS = ("prior", "uniform", "predict")


@dataclass(frozen=True)
class BeliefGrid:
    """The exact filter of `model` (M_0) from the belief kept, rounded to multiples of 1/`resolution` after each step.

    Rounding may rule out a state that the run is in, and with it the next observation. Then `fallback` takes the
    place of the update: `prior`, the start belief; `uniform` over all states; `predict`, the action's effect
    without the observation. Memory: `(state, multiples)` in ascending order, no zeros, summing to the resolution.
    """

    model: POMDP
    resolution: int
    fallback: str = "prior"

    def __post_init__(self) -> None:
        """Refuse a grid without steps and an unknown fallback."""
        require_grid(self.resolution, self.fallback)

    @property
    def name(self) -> str:
        """Canonical text."""
        return grid_name(self.resolution, self.fallback)

    @property
    def bounded(self) -> bool:
        """Always: the grid is finite."""
        return True

    def start(self) -> Memory:
        """The rounded start belief."""
        return on_grid(self.model.exact.start, self.resolution)

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """The rounded update; the messages go."""
        action = self.model.action_index(event.action)
        observation = self.model.observation_index(event.observation)
        belief = {s: Fraction(n, self.resolution) for s, n in memory}
        measure = exact_step(self.model, belief, action, observation) or self._fall_back(belief, action)
        return on_grid(normalise(measure), self.resolution), removed(event, self.name, "summarisation")

    def show(self, memory: Memory) -> Context:
        """One note: the states of positive belief."""
        entries = [f"{self.model.states[s]}={Fraction(n, self.resolution)}" for s, n in memory]
        return Context((note(f"belief({','.join(entries)})", len(entries)),))

    def _fall_back(self, belief: Mapping[int, Fraction], action: int) -> dict[int, Fraction]:
        """The measure that replaces an update of probability 0."""
        if self.fallback == "prior":
            return self.model.exact.start
        if self.fallback == "uniform":
            return dict.fromkeys(range(self.model.num_states), Fraction(1))
        reached: dict[int, Fraction] = {}
        for measure in exact_measures(self.model, belief, action).values():
            for s, mass in measure.items():
                reached[s] = reached.get(s, Fraction(0)) + mass
        return reached


def grid_name(resolution: int, fallback: str) -> str:
    """The canonical text of a grid, without the fallback where it is the usual one."""
    return f"belief_grid:{resolution}" + ("" if fallback == "prior" else f":{fallback}")


def require_grid(resolution: int, fallback: str) -> None:
    """ModelError for a grid without steps or an unknown fallback."""
    if not isinstance(resolution, int) or isinstance(resolution, bool) or resolution < 1:
        raise ModelError(f"belief_grid needs a resolution from 1, such as belief_grid:4; got {resolution!r}")
    if fallback not in FALLBACKS:
        raise ModelError(
            f"belief_grid has no fallback {fallback!r}; known: {', '.join(FALLBACKS)}; such as belief_grid:4:predict"
        )


def on_grid(belief: Mapping[int, Fraction], resolution: int) -> tuple[tuple[int, int], ...]:
    """`(state, multiples of 1/resolution)` nearest to a belief, by largest remainder; ties go to the lower state."""
    whole = {s: int(p * resolution) for s, p in belief.items()}
    left = resolution - sum(whole.values())
    by_remainder = sorted(belief, key=lambda s: (whole[s] - belief[s] * resolution, s))
    for s in by_remainder[:left]:
        whole[s] += 1
    return tuple((s, n) for s, n in sorted(whole.items()) if n)
