"""Contrasts of an ablation: a factorial's effects by brute force, Holm's family, pairs, and what was not applied."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from experiments.ablation_contrasts import (
    NOT_APPLIED,
    UNCHECKED,
    YES,
    Measured,
    differences,
    effects,
    evaluate,
)
from experiments.ablation_design import Factor, label
from experiments.statistics import holm, minimum_detectable_effect, paired_difference

FACTORS = (Factor("a", ("0", "1", "2"), "0"), Factor("b", ("0", "1"), "0"), Factor("c", ("0", "1"), "0"))
ARMS = [
    {f.name: level for f, level in zip(FACTORS, chosen, strict=True) if level != "0"}
    for chosen in product(*(f.levels for f in FACTORS))
]


def measured(returns: np.ndarray, exact: bool = True) -> dict[str, Measured]:
    """Arms with `returns` `[3, 2, 2]` or `[3, 2, 2, seeds]`, all of them different in what was seen."""
    found = {}
    for arm, values in zip(ARMS, returns.reshape(12, -1), strict=True):
        found[label(arm)] = Measured(arm, tuple(values.tolist()), exact, label(arm))
    return found


def test_main_effects_and_interactions_are_means_of_differences() -> None:
    y = np.random.default_rng(1).integers(-8, 9, (3, 2, 2)).astype(float)
    found = {f.contrast.name: f for f in evaluate(effects("factorial", FACTORS, ARMS), measured(y))}
    assert len(found) == 4 + 5
    for a in (1, 2):
        assert found[f"a={a}"].effect == pytest.approx((y[a] - y[0]).mean())
        assert found[f"a={a} x b=1"].effect == pytest.approx((y[a, 1] - y[0, 1] - y[a, 0] + y[0, 0]).mean())
        crossed = (y[a, :, 1] - y[0, :, 1] - y[a, :, 0] + y[0, :, 0]).mean()
        assert found[f"a={a} x c=1"].effect == pytest.approx(crossed)
    assert found["b=1"].effect == pytest.approx((y[:, 1] - y[:, 0]).mean())
    assert all(f.exact and f.p_value is None and f.lower is None and f.applied == YES for f in found.values())


def test_sampled_contrasts_are_paired_over_seeds_and_adjusted_by_holm() -> None:
    y = np.random.default_rng(2).normal(size=(3, 2, 2, 9)) + np.arange(3)[:, None, None, None]
    found = evaluate(differences(ARMS), measured(y, exact=False))
    flat = y.reshape(12, 9)
    means = [paired_difference(flat[0], row) for row in flat[1:]]
    family = holm({str(i): mean.p_value for i, mean in enumerate(means)})
    for one, mean, test in zip(found, means, family, strict=True):
        assert (one.effect, one.lower, one.upper) == pytest.approx((mean.estimate, mean.lower, mean.upper))
        assert (one.p_value, one.p_holm) == pytest.approx((mean.p_value, test.adjusted))
        assert one.detectable == pytest.approx(minimum_detectable_effect(mean.standard_error, 8).effect)


def test_an_idle_change_has_no_effect_no_p_and_no_place_in_the_family() -> None:
    y = np.random.default_rng(3).normal(size=(3, 2, 2, 9))
    y[:, 1] = y[:, 0]
    arms = measured(y, exact=False)
    for name, arm in arms.items():
        rest = {key: level for key, level in arm.changes.items() if key != "b"}
        arms[name] = Measured(arm.changes, arm.returns, False, label(rest))
    found = {f.contrast.name: f for f in evaluate(effects("factorial", FACTORS, ARMS), arms)}
    idle = {name for name in found if "b=1" in name}
    assert {name for name, f in found.items() if f.applied == NOT_APPLIED} == idle and len(idle) == 4
    assert all(found[name].effect is None and found[name].p_value is None for name in idle)
    others = {name: f.p_value for name, f in found.items() if name not in idle}
    assert {test.name: test.adjusted for test in holm(others)} == {
        name: found[name].p_holm for name in others
    }


def test_a_change_that_is_idle_in_some_settings_is_counted() -> None:
    arms = measured(np.arange(12.0).reshape(3, 2, 2))
    twin = arms["a=1"]
    arms["a=1, b=1"] = Measured(arms["a=1, b=1"].changes, twin.returns, True, twin.fingerprint)
    found = {f.contrast.name: f for f in evaluate(effects("factorial", FACTORS, ARMS), arms)}
    assert found["b=1"].applied == "in part (5 of 6)" and found["b=1"].effect is not None
    assert found["a=1 x b=1"].applied.startswith("in part")


def test_a_contrast_without_all_its_arms_is_left_out_and_mixed_methods_are_unchecked() -> None:
    arms = measured(np.arange(12.0).reshape(3, 2, 2))
    del arms["a=1"]
    names = {f.contrast.name for f in evaluate(effects("factorial", FACTORS, ARMS), arms)}
    assert "a=1" not in names and "a=2" in names
    arms["a=2"] = Measured({"a": "2"}, (1.0, 2.0, 4.0), False, "other")
    (one,) = (f for f in evaluate(differences(ARMS), arms) if f.contrast.name == "a=2")
    assert one.applied == UNCHECKED and one.effect == pytest.approx(7 / 3) and not one.exact
