"""Certified bounds: V* from both sides, W, and their difference V_f. The public list."""

from pomdp.bounds.feedback import Feedback, feedback
from pomdp.bounds.open_loop import solve_open_loop
from pomdp.bounds.solver import Solution, solve, warm_up

__all__ = ["Feedback", "Solution", "feedback", "solve", "solve_open_loop", "warm_up"]
