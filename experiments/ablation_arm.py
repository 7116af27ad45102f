"""One arm of an ablation, measured: J, its cost, and a fingerprint of its run; imports harnesses, ablation_rollout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.ablation_design import changed, spec_of
from experiments.ablation_rollout import sample
from experiments.study import StudyError, fingerprint
from harnesses.case import Case, Effort
from harnesses.context import Context
from harnesses.kernel import TooManyStates
from pomdp.simulate import cut

EXACT, SAMPLED = "exact", "sampled"
# Probabilities are compared in these units; the offset keeps fractions such as 1/1024 away from a rounding tie.
UNIT, OFFSET = 1e9, 0.1234567
PLACES = 12
MAX_STEPS = 400


def measure(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The row of one cell; exact where the induced POMDP has at most `max_states` states, else sampled.

    `steps` are the actions of a run within the horizon, discounted ones without a horizon; `tokens` the mean size of
    the context at an action; `contexts` those that can be met, or, where sampled, those that were. Raises ModelError.
    """
    spec = spec_of(changed(cell["base"], cell["arm"]))
    if spec.task.digest != cell["task"]:
        raise StudyError(
            f"the task {spec.task_text} is not the one that was asked about; start the ablation again"
        )
    effort = Effort(cell["gap"], cell["seconds"], certify=False, max_states=cell["max_states"])
    case = Case(spec, effort)
    try:
        case.induced  # noqa: B018 - its size decides
    except TooManyStates:
        return _sampled(case, cell["repeats"], cell["episodes"])
    return _exact(case)


def _exact(case: Case) -> dict[str, Any]:
    induced, pi, gamma = case.induced, case.pi, case.spec.criterion.gamma
    horizon = case.spec.criterion.horizon
    length = min(cut(induced.model, case.spec.criterion, None)[0], horizon or MAX_STEPS)
    live = np.flatnonzero(induced.shown >= 0)
    sizes = np.array([context.tokens for context in induced.contexts], dtype=float)
    names = [context_key(context) for context in induced.contexts]
    run: list[dict[str, int]] = []
    met = np.zeros(induced.num_contexts, dtype=bool)
    steps = tokens = 0.0
    for t, measure_t in enumerate(induced.occupancy(pi, length)):
        mass = np.bincount(induced.shown[live], weights=measure_t[live], minlength=induced.num_contexts)
        weight = 1.0 if horizon is not None else gamma**t
        steps += weight * float(mass.sum())
        tokens += weight * float(mass @ sizes)
        seen = np.flatnonzero(mass > 0.0)
        met[seen] = True
        run.append({names[c]: quantum(mass[c]) for c in seen if quantum(mass[c])})
    actions = induced.model.actions
    did = {
        names[c]: {actions[a]: quantum(pi[c, a]) for a in np.flatnonzero(pi[c])} for c in np.flatnonzero(met)
    }
    J = round(case.returned, PLACES) + 0.0
    return {
        "method": EXACT,
        "returns": [J],
        "steps": steps,
        "tokens": tokens / steps,
        "contexts": induced.num_contexts,
        "contexts_met": int(met.sum()),
        "states": induced.model.num_states,
        "truncation": 0.0,
        # Charges are felt, not seen: J stands for them.
        "fingerprint": fingerprint({"saw": run, "could": sorted(actions), "did": did, "J": quantum(J)}),
        "reachable": fingerprint({"contexts": sorted(names), "actions": sorted(actions)}),
    }


def _sampled(case: Case, repeats: int, episodes: int) -> dict[str, Any]:
    found = sample(case, range(repeats), episodes)
    keys = {context: context_key(context) for _, context, _ in found.seen}
    counts = {f"{t}/{keys[context]}/{found.actions[a]}": n for (t, context, a), n in found.seen.items()}
    returns = [round(float(J), PLACES) + 0.0 for J in found.returns]
    return {
        "method": SAMPLED,
        "returns": returns,
        "steps": found.steps,
        "tokens": found.tokens,
        "contexts": len(keys),
        "contexts_met": len(keys),
        "states": None,
        "truncation": found.truncation,
        "fingerprint": fingerprint(
            {"counts": counts, "could": sorted(found.actions), "J": [quantum(J) for J in returns]}
        ),
        "reachable": None,
    }


def context_key(context: Context) -> str:
    """What a model can tell contexts apart by: roles, texts and sizes of the messages."""
    return fingerprint([[m.role, m.text, m.tokens] for m in context.messages])[:20]


def quantum(value: float) -> int:
    """A number in units of 1e-9, the same for numbers that differ by rounding alone."""
    return math.floor(float(value) * UNIT + OFFSET)
