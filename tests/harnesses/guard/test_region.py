"""The regions of a report: one at a time, in numpy and in JAX, alike at every tie."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnesses.guard.region import REGIONS, GuardError, Region, Thresholds, codes, cut, region, regions

F = Fraction
TYPES = (np.float16, np.float32, np.float64)
# Few of them, so that a report often is a threshold; some are no binary fractions, one is far below all others.
GRID = [
    F(0),
    F(1, 1000),
    F(1, 10),
    F(1, 3),
    F(3, 8),
    F(1, 2),
    F(2, 3),
    F(7, 10),
    F(31, 32),
    F(969, 1000),
    F(1),
]
taus = st.one_of(
    st.sampled_from(GRID), st.builds(lambda k, n: F(k % (n + 1), n), st.integers(0), st.integers(1, 99))
)


@st.composite
def limits(draw: st.DrawFn) -> Thresholds:
    """Two thresholds, equal ones and a guard that never acts among them."""
    low, high = sorted([draw(taus), draw(taus)])
    return Thresholds(draw(st.sampled_from([high, high, low, None])), low)


def around(tau: Fraction, kind: type) -> list:
    """The number of a type next to a threshold, with two neighbours on each side, within [0, 1]."""
    middle = kind(float(tau))
    found = [middle]
    for direction in (kind(-1), kind(2)):
        x = middle
        for _ in range(2):
            x = np.nextafter(x, direction)
            found.append(x)
    return [x for x in found if 0 <= x <= 1]


def decimal(x: np.floating) -> Fraction:
    """What a number of a type stands for: the shortest decimal that reads back as it."""
    return F(np.format_float_positional(x, unique=True, trim="0"))


@given(st.data(), limits(), st.sampled_from(TYPES))
def test_arrays_of_every_type_are_cut_as_their_members_are(data, thresholds, kind) -> None:
    near = [
        x for tau in (thresholds.tau_act, thresholds.tau_esc) if tau is not None for x in around(tau, kind)
    ]
    drawn = data.draw(st.lists(st.sampled_from([*near, *map(kind, (0, 0.25, 1))]), min_size=1, max_size=12))
    p = np.array([*drawn, *near], dtype=kind)
    found = regions(p, thresholds)
    assert found.dtype == np.int8 and found.shape == p.shape
    by_rule = [
        0
        if thresholds.tau_act is not None and decimal(x) >= thresholds.tau_act
        else 1
        if decimal(x) >= thresholds.tau_esc
        else 2
        for x in p
    ]
    assert found.tolist() == by_rule
    assert [REGIONS[code] for code in found] == [region(x, thresholds) for x in p]
    np.testing.assert_array_equal(regions(p.reshape(1, -1), thresholds), found[None])


@given(limits(), st.sampled_from(TYPES))
def test_jax_agrees_on_every_tie_inside_and_outside_jit_and_vmap(thresholds, kind) -> None:
    import jax

    with jax.enable_x64(kind is np.float64):
        jnp = jax.numpy
        near = [
            x
            for tau in (thresholds.tau_act, thresholds.tau_esc)
            if tau is not None
            for x in around(tau, kind)
        ]
        p = np.resize(np.array([*near, 0, 0.25, 1], dtype=kind), 24)
        expected = regions(p, thresholds)
        on_device = jnp.asarray(p)
        assert on_device.dtype == kind
        outside = regions(on_device, thresholds)
        assert isinstance(outside, jax.Array) and outside.dtype == jnp.int8
        np.testing.assert_array_equal(outside, expected)
        act, esc = (cut(tau, kind) for tau in (thresholds.tau_act, thresholds.tau_esc))
        inside, mapped = compiled()
        np.testing.assert_array_equal(inside(on_device, act, esc), expected)
        np.testing.assert_array_equal(mapped(on_device, act, esc), expected)


def compiled() -> tuple:
    """`codes` under jit, and under vmap within jit: compiled once for every type, not once an example."""
    import jax

    if not _COMPILED:
        jnp = jax.numpy
        _COMPILED.append(jax.jit(lambda p, act, esc: codes(p, act, esc, jnp)))
        _COMPILED.append(jax.jit(jax.vmap(lambda p, act, esc: codes(p, act, esc, jnp), (0, None, None))))
    return tuple(_COMPILED)


_COMPILED: list = []


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "thresholds", [Thresholds("31/32", "3/8"), Thresholds(0.7, 0.7), Thresholds(None, "1/3")]
)
def test_regions_are_cut_under_jit_and_vmap_with_the_thresholds_closed_over(kind, thresholds) -> None:
    import jax

    with jax.enable_x64(kind is np.float64):
        near = [x for tau in (thresholds.tau_act or F(1), thresholds.tau_esc) for x in around(tau, kind)]
        p = np.array([*near, 0, 1], dtype=kind)
        found = jax.jit(lambda x: regions(x, thresholds))(jax.numpy.asarray(p))
        one_by_one = jax.vmap(lambda x: regions(x, thresholds))(jax.numpy.asarray(p))
        np.testing.assert_array_equal(found, regions(p, thresholds))
        np.testing.assert_array_equal(one_by_one, regions(p, thresholds))


@pytest.mark.parametrize("kind", TYPES)
def test_jax_tells_the_least_numbers_from_zero(kind) -> None:
    """A guard whose disallowed reports are all 0 acts above 0, not at it; a compiled comparison flushes to 0."""
    import jax

    with jax.enable_x64(kind is np.float64):
        least = np.nextafter(kind(0), kind(1))
        p = np.array([-0.0, 0, least, 2 * least, 4 * least, np.finfo(kind).tiny, 1, math.nan], dtype=kind)
        for tau_esc in (0, str(least), str(2 * least)):
            for tau_act in (str(2 * least), str(4 * least), None):
                thresholds = Thresholds(tau_act, tau_esc)
                one_by_one = [REGIONS.index(region(x, thresholds)) for x in p[:-1]] + [2]
                for cuts in (regions, jax.jit(regions, static_argnums=1)):
                    assert cuts(jax.numpy.asarray(p), thresholds).tolist() == one_by_one


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.bool_])
def test_whole_numbers_are_reports_too(kind) -> None:
    p = np.array([0, 1], dtype=kind)
    assert regions(p, Thresholds("1/2", "1/4")).tolist() == [2, 0]


@given(taus, st.sampled_from(TYPES))
@example(F(1, 10**9), np.float16)
@example(F(7, 10), np.float64)
def test_a_cut_is_the_least_number_that_reaches_its_threshold(tau, kind) -> None:
    found = cut(tau, kind)
    assert found.dtype == kind and decimal(found) >= tau
    below = np.nextafter(found, kind(-1))
    assert below < 0 or decimal(below) < tau


def test_a_float_stands_for_its_shortest_decimal() -> None:
    """0.7 lies below 7/10 in binary, and a person who typed it means 7/10."""
    limits = Thresholds("7/10", "3/10")
    assert F(0.7) < F(7, 10)
    for p in (0.7, np.float64(0.7), np.float32(0.7), np.float16(0.7), "0.7", F(7, 10)):
        assert region(p, limits) is Region.ACT
    assert region(math.nextafter(0.7, 0), limits) is Region.ASK
    assert regions([0.7, math.nextafter(0.7, 0)], limits).tolist() == [0, 1]


def test_a_region_has_no_truth_value() -> None:
    for kind in Region:
        with pytest.raises(TypeError, match="neither true nor false; write `region is Region.ACT`"):
            bool(kind)
        with pytest.raises(TypeError, match="neither true nor false"):
            _ = not kind
    assert [kind.value for kind in REGIONS] == ["act", "ask", "escalate"]


def test_a_guard_that_never_acts_asks_or_escalates_at_every_report() -> None:
    limits = Thresholds(None, "1/2")
    assert region(1, limits) is Region.ASK and regions([0.0, 0.5, 1.0], limits).tolist() == [2, 1, 1]
    assert not limits.collapsed and limits.json()["tau_act"] is None


def test_thresholds_tell_both_forms_of_their_numbers() -> None:
    assert Thresholds(0.96875, "3/8").json() == {
        "tau_act": 0.96875, "tau_esc": 0.375, "tau_act_exact": "31/32", "tau_esc_exact": "3/8", "collapsed": False
    }  # fmt: skip
    assert Thresholds(F(3, 4), 0.75).collapsed


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda: Thresholds(F(1, 4), F(1, 2)), "tau_esc 1/2 is above tau_act 1/4"),
        (lambda: Thresholds(1.5, 0), "tau_act is 1.5, not a probability"),
        (lambda: Thresholds(1, None), "tau_esc: 'None' is not a number"),
        (lambda: region(float("nan"), Thresholds(1, 0)), "report p: nan is not a finite number"),
        (lambda: region(np.float32("inf"), Thresholds(1, 0)), "report p: inf is not a finite number"),
        (lambda: region(True, Thresholds(1, 0)), "report p: 'True' is not a number"),
        (lambda: region(-0.01, Thresholds(1, 0)), "report p is -0.01, not a probability"),
        (lambda: cut(2), "threshold is 2, not a probability"),
        (lambda: cut("1/2", np.int64), "int64 holds no probability; compare in a float type"),
    ],
)
def test_what_is_no_report_and_no_threshold_is_refused_by_name(make, fragment) -> None:
    with pytest.raises(GuardError, match=fragment):
        make()
