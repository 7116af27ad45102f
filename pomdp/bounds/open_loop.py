"""W: the best value of an action sequence that looks at nothing; imports pomdp.bounds.solver.

Without observations a belief has one successor an action, so W is V* of the model whose observations are all one
symbol, and the same search and the same certificates serve. Its lower end is a sequence: a prefix, then a cycle.
Source: M1 §1.7.3; formal core, section 3.
"""

from __future__ import annotations

from pomdp.bounds.search import Progress
from pomdp.bounds.solver import Announce, Solution, solve
from pomdp.certificate import OPEN_LOOP
from pomdp.criterion import Criterion
from pomdp.model import POMDP


def solve_open_loop(
    model: POMDP,
    criterion: Criterion,
    *,
    gap: float = 1e-3,
    time_limit: float = 60.0,
    certify: bool = True,
    cache: bool = False,
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> Solution:
    """Bounds on W, as `solve` gives them on V*; `certificate.actions()` is the sequence of the lower end."""
    return solve(
        model.blinded(),
        criterion,
        gap=gap,
        time_limit=time_limit,
        certify=certify,
        cache=cache,
        progress=progress,
        announce=announce,
        quantity=OPEN_LOOP,
    )
