"""Harnesses as POMDP constructors, and their running counterparts; may import pomdp, never experiments.

A harness is the loop, the tools, the context manager and the control around a model. Each part will be built
from constructors, functions from a POMDP to a POMDP, whose composition is again an ordinary POMDP that
everything in `pomdp` solves, simulates and certifies unchanged. The constructors arrive with the next
milestone; until then this package is empty.
"""
