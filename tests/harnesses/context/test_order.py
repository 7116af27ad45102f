"""The coarsening order against all histories of small models."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.context import (
    Compose,
    Context,
    ContextMap,
    Last,
    Pairs,
    Refutation,
    Rename,
    Results,
    Sizes,
    Summary,
    Table,
    Unordered,
    coarsens,
    fold,
    parse_map,
)
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

SIZES = Sizes()
NAMES = (
    *(
        "null",
        "last:1",
        "last:2",
        "last_messages:1",
        "last_messages:3",
        "full:3",
        "summary:count",
        "summary:latest",
    ),
    *(
        "summary:parity",
        "oldest_first:60",
        "oldest_first:45:partial",
        "belief_grid:2",
        "pin:0/*:last:1",
        "counter:null",
    ),
    *(
        "pin:*/0:null",
        "counter:last:1",
        "compose:unordered:last:2",
        "compose:calls:last:2",
        "retrieve:0>*/0:null",
    ),
)


def shown(phi: ContextMap, pairs) -> Context:
    """The context after a history of names."""
    return fold(phi, [SIZES.event(*pair) for pair in pairs])


@settings(max_examples=120)
@given(st.data())
def test_the_order_is_that_of_all_histories(enumerate_histories, data: st.DataObject) -> None:
    """Source: design section 4, `garbling`: psi exists iff no two histories refute it."""
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2, min_observations=2))
    phi1, phi2 = (parse_map(data.draw(st.sampled_from(NAMES))).bind(model, 3) for _ in range(2))
    horizon = data.draw(st.integers(1, 4))
    images: dict[Context, set[Context]] = {}
    reachable = [pairs for pairs, _ in enumerate_histories(model, horizon - 1)]
    for pairs in reachable:
        images.setdefault(shown(phi1, pairs), set()).add(shown(phi2, pairs))
    found = coarsens(model, phi1, phi2, horizon, SIZES)
    if isinstance(found, Refutation):
        assert found.first in reachable and found.second in reachable
        assert shown(phi1, found.first) == shown(phi1, found.second) == found.context
        assert (shown(phi2, found.first), shown(phi2, found.second)) == found.images
        assert found.images[0] != found.images[1]
        like = [pairs for pairs in reachable if shown(phi1, pairs) == found.context]
        assert len(found.first) == min(map(len, like)) <= len(found.second)
        # Contexts of phi1 are refuted as soon as their second image is seen.
        seconds = []
        for context in images:
            several = [pairs for pairs in reachable if shown(phi1, pairs) == context]
            image = shown(phi2, several[0])
            seconds += [len(pairs) for pairs in several if shown(phi2, pairs) != image]
        assert len(found.second) == min(seconds)
    else:
        assert images == {context: {image} for context, image in found.items()}
    assert isinstance(found, dict) == all(len(several) == 1 for several in images.values())


def compare(model: POMDP, one: str, other: str, horizon: int | None) -> dict[Context, Context] | Refutation:
    """Whether `other` is coarser than `one`."""
    phi1, phi2 = (parse_map(name).bind(model, horizon, SIZES) for name in (one, other))
    return coarsens(model, phi1, phi2, horizon, SIZES)


@pytest.mark.parametrize("horizon", [None, 4])
def test_a_shorter_window_is_coarser_and_not_conversely(horizon: int | None) -> None:
    tiger = task("tiger").model
    psi = compare(tiger, "last:2", "last:1", horizon)
    assert isinstance(psi, dict)
    assert all(image.messages == context.messages[-2:] for context, image in psi.items())
    refuted = compare(tiger, "last:1", "last:2", horizon)
    assert isinstance(refuted, Refutation)
    assert refuted.first[-1] == refuted.second[-1]
    assert refuted.first[-2:] != refuted.second[-2:]


@pytest.mark.parametrize(
    ("finer", "coarser"),
    [
        *((name, "null") for name in ("last:1", "summary:count:2", "pin:flip/t2:last:1", "belief_grid:2")),
        ("last:2", "last_messages:3"),
        ("last_messages:3", "last:1"),
        ("pin:flip/t2:last:1", "pin:flip/t2:null"),
        ("last:2", "compose:calls:last:2"),
        ("full:5", "summary:count:2"),
    ],
)
def test_one_map_is_coarser_than_another_and_not_conversely(finer: str, coarser: str) -> None:
    model = task("flip:3").model
    assert isinstance(compare(model, finer, coarser, 5), dict)
    assert isinstance(compare(model, coarser, finer, 5), Refutation)


@pytest.mark.parametrize(
    ("finer", "coarser"), [("counter:8:last:1", "last:1"), ("last:2", "compose:unordered:last:2")]
)
def test_time_and_order_tell_something_on_the_tiger_and_nothing_where_observations_show_the_stage(
    finer: str, coarser: str
) -> None:
    flip, tiger = task("flip:3").model, task("tiger").model
    for one, other in ((finer, coarser), (coarser, finer)):
        assert isinstance(compare(flip, one, other, 5), dict)
    assert isinstance(compare(tiger, finer, coarser, 5), dict)
    assert isinstance(compare(tiger, coarser, finer, 5), Refutation)


def test_a_pin_is_finer_where_the_flip_scrolls_out() -> None:
    """M1 §1.5.2: at the flag, the pinned context holds the window's pair and the flip beside it."""
    model = task("flip:3").model
    assert isinstance(compare(model, "last:1", "pin:flip/t2:last:1", 5), Refutation)
    assert isinstance(compare(model, "full:5", "pin:flip/t2:last:1", 5), dict)


@pytest.mark.parametrize("psi", [Results(), Unordered(), Rename((("t2", "t"), ("t3", "t")))])
def test_a_composition_gives_back_its_psi(psi) -> None:
    model = task("flip:3").model
    inner = Last(2)
    found = coarsens(model, inner, Compose(psi, inner), 5, SIZES)
    assert isinstance(found, dict)
    assert all(image.messages == psi.apply(context.messages)[0] for context, image in found.items())


def test_a_table_gives_back_its_entries() -> None:
    model = task("tiger").model
    inner = Last(1)
    contexts = {
        pairs: shown(inner, [pairs]) for pairs in [("listen", "tiger-left"), ("listen", "tiger-right")]
    }
    psi = Table(dict.fromkeys(contexts.values(), "heard"))
    found = coarsens(model, inner, Compose(psi, inner), 3, SIZES)
    assert isinstance(found, dict)
    assert {found[context].text for context in contexts.values()} == {"heard"}
    assert isinstance(coarsens(model, Compose(psi, inner), inner, 3, SIZES), Refutation)


def test_the_order_is_of_histories_that_can_happen() -> None:
    """A cue that is always the same tells nothing: with it or without, the windows are functions of each other."""
    model = task("drift").model
    assert isinstance(coarsens(model, Last(1), Compose(Results(), Last(1)), 4), dict)
    assert isinstance(coarsens(model, Compose(Results(), Last(1)), Last(1), 4), Refutation)
    blind = task("tiger").model.blinded()
    assert isinstance(coarsens(blind, parse_map("compose:calls:last:2").bind(blind), Last(2), 4), dict)


def test_maps_without_an_end_and_stochastic_maps_are_refused_in_one_line() -> None:
    tiger = task("tiger").model
    with pytest.raises(
        ModelError, match="oldest_first:3000 has infinitely many contexts .*; give --horizon N"
    ):
        compare(tiger, "last:1", "oldest_first:3000", None)
    with pytest.raises(ModelError, match="summary:pairs:error=1/2 is stochastic; the order compares determ"):
        compare(tiger, "summary:pairs:error=1/2", "null", 3)
    with pytest.raises(ModelError, match="more than 20 pairs of memories; give a smaller horizon"):
        coarsens(tiger, Last(3), Summary(Pairs()), 9, max_nodes=20)
