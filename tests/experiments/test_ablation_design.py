"""Designs of ablations: levels and their canonical place, which arms, which baseline, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.ablation_design import canonical, changed, document, factor, label, plan, setting, spec_of
from pomdp.model import ModelError

BASE: dict[str, Any] = {
    "task": "library:tiger",
    "horizon": 4,
    "model": {"kind": "naive", "temperature": "0"},
    "harness": {
        "tools": ["select:listen,open-left"],
        "control": ["timeout:listen:1/10", "step_limit:3"],
        "loop": [],
        "context": "last:1",
    },
}


def test_a_constructor_is_set_put_at_its_place_or_removed() -> None:
    def control(**levels: str) -> list[str]:
        return changed(BASE, {f"control.{name}": level for name, level in levels.items()})["harness"][
            "control"
        ]

    assert control(timeout="listen:1/2") == ["timeout:listen:1/2", "step_limit:3"]
    assert control(timeout="none") == ["step_limit:3"]
    assert control(deny="listen") == ["timeout:listen:1/10", "deny:listen", "step_limit:3"]
    assert control(stall="3-4") == ["timeout:listen:1/10", "step_limit:3", "stall:3:4"]
    assert control(call_budget="none") == BASE["harness"]["control"]
    assert changed(BASE, {"loop.malformed": "0.1"})["harness"]["loop"] == ["malformed:1/10"]
    assert BASE["harness"]["loop"] == []


def test_levels_are_one_text_however_written() -> None:
    assert canonical("control.stall", "3-4") == canonical("control.stall", "3:4") == "3:4"
    assert canonical("model.temperature", "1.0") == canonical("model.temperature", "1") == "1"
    assert canonical("context", "oldest-first:300") == "oldest_first:300"
    assert setting(BASE, "control.timeout") == canonical("control.timeout", "listen:0.1")
    assert setting(BASE, "control.stall") == "none"
    one = factor("context=pin:listen/tiger-left,listen/tiger-right:last:1;last:1", BASE)
    assert len(one.levels) == 2 and one.baseline == "last:1"
    assert factor("control.step-limit=3,4", BASE).name == "control.step_limit"


def test_the_baseline_is_the_spec_where_its_settings_are_among_the_levels() -> None:
    made = plan(BASE, ["context=full,last:1", "control.stall=none,3-4"], "factorial")
    assert made.own and made.base == BASE
    assert [label(arm) for arm in made.arms] == [
        "baseline",
        "control.stall=3:4",
        "context=full",
        "context=full, control.stall=3:4",
    ]
    other = plan(BASE, ["context=last:2,full", "model.temperature=0,0.5"], "one-at-a-time")
    assert not other.own and other.base["harness"]["context"] == "last:2"
    assert [label(arm) for arm in other.arms] == ["baseline", "context=full", "model.temperature=0.5"]


def test_leave_one_out_removes_each_constructor_and_the_context_map() -> None:
    made = plan(BASE, [], "leave-one-out")
    assert [label(arm) for arm in made.arms] == [
        "baseline",
        "without select:listen,open-left",
        "without timeout:listen:1/10",
        "without step_limit:3",
        "context=full",
    ]
    parts = [spec_of(changed(made.base, arm)).harness.json() for arm in made.arms]
    assert parts[1]["tools"] == [] and parts[2]["control"] == ["step_limit:3"]
    assert parts[4] == {**BASE["harness"], "context": "full"}
    endless = {**BASE, "discount": 0.9}
    del endless["horizon"]
    kept = plan(endless, [], "leave-one-out")
    assert len(kept.arms) == 4 and "the context map stays" in kept.notes[0]
    twice = {**BASE, "harness": {**BASE["harness"], "control": ["deny:listen", "deny:listen"]}}
    labels = [label(arm) for arm in plan(twice, [], "leave-one-out").arms]
    assert len(set(labels)) == len(labels)


def test_a_document_stands_alone(tmp_path: Path) -> None:
    text = 'task = "library:flip:3"\nmodel = "naive:0.1"\ncontrol = {step-limit = 4}\ncontext = ["last:1", "counter"]\n'
    path = tmp_path / "spec.toml"
    path.write_text(text)
    found = document(path)
    assert found["model"] == {"kind": "naive", "temperature": "0.1"}
    assert found["harness"]["control"] == ["step_limit:4"]
    assert spec_of(found).json()["harness"] == found["harness"]


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("memory=1,2", "'memory' is nothing to vary; known: context, tools.NAME"),
        ("control.stal=none,3-4", "did you mean stall"),
        ("control.coarsen=none,x", "tools.coarsen is one"),
        ("model.strength=1,2", "model has no 'strength'"),
        ("context=last:1", "two levels or more"),
        ("context", "two levels or more"),
        ("context=last:1,last-1x", "no context map"),
        ("control.stall=none,3", "stall stop is missing"),
        ("model.temperature=0,warm", "give a number such as 0.5"),
        ("model.kind=naive,clever", "no model 'clever'"),
        ("control.stall=3-4,3:4", "has the level 3:4 twice"),
        ("model.kind=naive,rules", "needs `otherwise`"),
    ],
)
def test_what_cannot_be_varied_is_refused_in_one_line(vary: str, message: str) -> None:
    with pytest.raises(ModelError, match=message.replace("(", r"\(")) as caught:
        plan(BASE, [vary], "factorial")
    assert "\n" not in str(caught.value)


def test_designs_that_make_no_sense_are_refused() -> None:
    double = {
        **BASE,
        "harness": {**BASE["harness"], "control": ["timeout:listen:1/10", "timeout:open-left:1/10"]},
    }
    for given, vary, design, message in [
        (BASE, [], "factorial", "nothing is varied"),
        (BASE, ["context=full,last:1"], "leave-one-out", "leave --vary out"),
        (BASE, ["context=full,last:1"], "latin-square", "no design"),
        (BASE, ["context=full,last:1", "context=last:2,last:1"], "factorial", "stands twice"),
        (double, ["control.timeout=none,listen:1/5"], "factorial", "more than once"),
        (BASE, [f"context={','.join(f'last:{k}' for k in range(1, 300))}"], "factorial", "more than 256"),
    ]:
        with pytest.raises(ModelError, match=message):
            plan(given, vary, design)
