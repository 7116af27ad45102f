"""Tasks with known values, from two states up; the public list. Source: design of the formal core, section 7.

>>> from pomdp.library import task
>>> cue = task("tmaze:4:0.9")
>>> cue.model
POMDP(tmaze:4:0.9: 11 states, 3 actions, 4 observations, discount 0.95)
>>> cue.optimal(cue.criterion())
Fraction(130321, 200000)
"""

from pomdp.library.catalogue import FAMILIES, task, tasks
from pomdp.library.definition import Task
from pomdp.library.family import Family

__all__ = ["FAMILIES", "Family", "Task", "task", "tasks"]
