"""Language models at the desk's agent node, by name; imports clerk, and lm_agent and providers when they are named."""

from __future__ import annotations

from harnesses.desk.clerk import Clerk
from harnesses.runtime.models import Model

SCRIPTED, SMOLLM2 = "scripted", "smollm2"


def language_model(name: str | None = None, seed: int = 0) -> Model:
    """The scripted clerk unless a name is given: `smollm2`, or one that `harnesses.providers` knows.

    Raises AgentError for an unknown name or a missing package or key, DeciderError without weights.
    """
    if name is None or name == SCRIPTED:
        return Clerk(seed=seed)
    if name == SMOLLM2:
        from harnesses.desk.lm_agent import smollm2_agent

        return smollm2_agent(seed)
    from harnesses.providers import model_named

    return model_named(name)
