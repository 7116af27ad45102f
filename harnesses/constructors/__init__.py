"""Constructors: functions from a POMDP to a POMDP, the parts that a harness is made of; the public list.

Each wraps the joint kernel P(s',o|s,a) of a model and keeps the part that can be reached; see `base`. By text, with
the order in which they nest: `catalogue`. Source: design of the formal core, section 2; M1 Def 1.4.1.

>>> from harnesses.constructors import step_limit
>>> from pomdp.library import task
>>> step_limit(task("tiger").model, 2)
POMDP(tiger:0.85: 7 states, 3 actions, 3 observations, discount 0.95)
"""

from harnesses.constructors.equivalence import difference
from harnesses.constructors.failures import deny, malformed, retry, timeout
from harnesses.constructors.guards import gate, guard
from harnesses.constructors.limits import call_budget, stall, step_limit
from harnesses.constructors.tools import (
    coarsen,
    garble,
    merge,
    mixture,
    scratchpad,
    select,
    with_unexposed,
)
from harnesses.guard.costs import Costs, Reviewer

__all__ = [
    "Costs",
    "Reviewer",
    "call_budget",
    "coarsen",
    "deny",
    "difference",
    "garble",
    "gate",
    "guard",
    "malformed",
    "merge",
    "mixture",
    "retry",
    "scratchpad",
    "select",
    "stall",
    "step_limit",
    "timeout",
    "with_unexposed",
]
