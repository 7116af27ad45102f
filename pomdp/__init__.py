"""Finite POMDPs: models, formats, beliefs, policies, exact values, certified bounds and Monte Carlo.

Knows nothing of harnesses or studies. Importing it loads neither JAX nor numba: the names below are imported when
they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "POMDP": "pomdp.model",
    "ModelError": "pomdp.model",
    "Criterion": "pomdp.criterion",
    "Interval": "pomdp.interval",
    "Controller": "pomdp.policy",
    "OpenLoop": "pomdp.policy",
    "AlphaVectors": "pomdp.policy",
    "Reactive": "pomdp.policy",
    "evaluate": "pomdp.value",
    "solve": "pomdp.bounds",
    "feedback": "pomdp.bounds",
    "task": "pomdp.library",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'pomdp' has no attribute {name!r}")
