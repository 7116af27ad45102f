"""The strategies produce what they advertise, for the model that they are asked for."""

from __future__ import annotations

import doctest
from fractions import Fraction

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import harnesses.testing
from harnesses.constructors.catalogue import KNOWN as CONSTRUCTORS
from harnesses.constructors.catalogue import parse_part
from harnesses.context import KNOWN as MAPS
from harnesses.context import Sizes, parse_map
from harnesses.spec import parse_spec
from harnesses.testing import KINDS, context_maps, parts, specs
from harnesses.testing import harnesses as drawn_harnesses
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.testing import pomdps

TIGER = task("tiger").model
FINDING = settings(max_examples=2000, derandomize=True, database=None, phases=[Phase.generate])
small = pomdps(max_states=2, max_actions=2, max_observations=2)


@pytest.mark.parametrize("name", MAPS)
def test_every_kind_of_map_occurs(name: str) -> None:
    assert find(context_maps(TIGER), lambda text: text.split(":")[0] == name, settings=FINDING)


@given(st.data())
def test_maps_bind_to_their_model_and_read_back(data: st.DataObject) -> None:
    model = data.draw(small)
    text = data.draw(context_maps(model))
    assert parse_map(text).name == text == parse_map(text).bind(model, 3, Sizes()).name


# A retry needs its timeout, a guard its reports: neither is drawn alone.
DRAWN = [(kind, name) for kind in KINDS for name in CONSTRUCTORS[kind] if name not in ("retry", "guard")]


@pytest.mark.parametrize(("kind", "name"), DRAWN)
def test_every_constructor_occurs_but_those_said_to_be_left_out(kind: str, name: str) -> None:
    assert find(parts(TIGER, part=kind), lambda part: part.name == name, settings=FINDING).part == kind


@given(st.data())
def test_parts_apply_to_their_model_and_read_back(data: st.DataObject) -> None:
    model = data.draw(small)
    part = data.draw(parts(model))
    assert part.apply(model).num_states >= 1
    assert parse_part(part.text) == part


@given(st.data())
def test_harnesses_fit_their_task(data: st.DataObject) -> None:
    model = data.draw(small)
    harness = data.draw(drawn_harnesses(model))
    ranks = [part.rank for part in harness.parts()]
    assert ranks == sorted(ranks)
    induced = harness.induce(model, Criterion(Fraction(1), 2), Sizes())
    assert induced.num_contexts >= 1


@pytest.mark.parametrize(
    "feature",
    [
        lambda h: not h.parts(),
        lambda h: len(h.parts()) >= 3,
        lambda h: h.tools and h.control,
        lambda h: any(part.name == "retry" for part in h.control),
        lambda h: h.loop and h.control,
        lambda h: h.context.name.count(":") > 2,
    ],
)
def test_each_advertised_harness_occurs(feature) -> None:
    assert find(drawn_harnesses(TIGER), feature, settings=FINDING)


@given(specs())
def test_specs_are_read(document: dict) -> None:
    spec = parse_spec(document)
    assert spec.harness.context.name == document["context"] and spec.criterion.horizon == document["horizon"]


def test_a_part_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="part 'tasks' is none of tools, control, loop"):
        find(parts(TIGER, part="tasks"), lambda _: True, settings=FINDING)


def test_the_example_in_the_documentation_runs() -> None:
    result = doctest.testmod(harnesses.testing)
    assert result.attempted >= 6 and not result.failed
