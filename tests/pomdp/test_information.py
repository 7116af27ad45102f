"""Bits: closed forms, scipy, the data-processing inequality on random chains, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from pomdp.information import (
    conditional_entropy,
    data_processing,
    entropy,
    marginal,
    mutual_information,
    processed,
)
from pomdp.model import ModelError
from pomdp.testing import distributions

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
ROUNDING = 1e-12


def binary(p: float) -> float:
    """The entropy of a coin, from its definition."""
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)


@st.composite
def joints(draw: st.DrawFn, first: int = 3, second: int = 4) -> dict[tuple[int, int], Fraction]:
    """A joint distribution {(x, y): p}, zeros common."""
    flat = draw(distributions(first * second))
    return {divmod(i, second): p for i, p in flat.items()}


@st.composite
def channels(draw: st.DrawFn, inputs: int = 4, outputs: int = 3) -> dict[int, dict[int, Fraction]]:
    """A row {z: p} for each y."""
    return {y: draw(distributions(outputs)) for y in range(inputs)}


def dense(joint: Mapping[tuple[int, int], Fraction], shape: tuple[int, int] = (3, 4)) -> np.ndarray:
    """The joint distribution as floats `[X, Y]`."""
    table = np.zeros(shape)
    for pair, p in joint.items():
        table[pair] = float(p)
    return table


@pytest.mark.parametrize("n", [1, 2, 3, 8, 1000])
def test_the_uniform_distribution_has_the_logarithm_of_its_size(n: int) -> None:
    assert entropy([Fraction(1, n)] * n) == pytest.approx(math.log2(n), abs=ROUNDING)
    assert entropy(np.full(n, 1 / n)) == pytest.approx(math.log2(n), abs=1e-10)


def test_what_is_certain_has_exactly_no_entropy_in_any_form() -> None:
    for certain in ([1.0, 0.0], np.array([0, 1]), {"a": 1, "b": 0}, [Fraction(1)], [[0.0, 1.0]]):
        found = entropy(certain)
        assert found == 0.0 and math.copysign(1.0, found) == 1.0


@pytest.mark.parametrize("p", [0.5, 0.25, 0.1, 1e-6, 1e-12])
def test_a_noisy_bit_tells_one_minus_the_entropy_of_its_noise(p: float) -> None:
    joint = np.array([[1 - p, p], [p, 1 - p]]) / 2
    assert mutual_information(joint) == pytest.approx(1 - binary(p), abs=ROUNDING)
    assert conditional_entropy(joint) == pytest.approx(binary(p), abs=ROUNDING)


def test_the_first_report_of_tiger_tells_the_known_number_of_bits() -> None:
    """The tiger is heard at the right door with probability 0.85; M1 §1.3's example."""
    heard = {
        ("left", "left"): 0.425,
        ("left", "right"): 0.075,
        ("right", "left"): 0.075,
        ("right", "right"): 0.425,
    }
    assert mutual_information(heard) == pytest.approx(0.3901596952835996, abs=ROUNDING)


def test_independent_fractions_share_exactly_nothing_and_a_copy_shares_everything() -> None:
    rows = {0: Fraction(1, 3), 1: Fraction(1, 7), 2: Fraction(11, 21)}
    apart = {(x, y): rows[x] * rows[y] for x in rows for y in rows}
    assert mutual_information(apart) == 0.0
    assert mutual_information({(x, x): p for x, p in rows.items()}) == pytest.approx(
        entropy(rows), abs=ROUNDING
    )
    assert conditional_entropy({(x, x): p for x, p in rows.items()}) == 0.0


def test_probabilities_too_small_for_a_product_of_doubles_do_no_harm() -> None:
    tiny = 1e-310
    assert mutual_information({(0, 0): 1.0, (1, 1): tiny}) == pytest.approx(0.0, abs=1e-300)
    assert entropy({0: 1.0, 1: tiny}) == pytest.approx(1029.8 * tiny, rel=1e-3)
    small = Fraction(1, 10**400)
    assert entropy({0: 1 - small, 1: small}) == pytest.approx(0.0, abs=1e-300)


@given(st.data())
def test_entropies_agree_with_scipy(data: st.DataObject) -> None:
    joint = data.draw(joints())
    table = dense(joint)
    assert entropy(joint) == pytest.approx(scipy_entropy(table.ravel(), base=2), abs=ROUNDING)
    assert entropy(table) == pytest.approx(entropy(joint), abs=ROUNDING)
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    divergence = scipy_entropy(table.ravel(), product.ravel(), base=2)
    assert mutual_information(joint) == pytest.approx(divergence, abs=ROUNDING)
    given_y = sum(
        column.sum() * scipy_entropy(column / column.sum(), base=2) for column in table.T if column.sum() > 0
    )
    assert conditional_entropy(table) == pytest.approx(given_y, abs=ROUNDING)


@given(joints())
def test_the_chain_rule_and_symmetry_hold(joint: dict[tuple[int, int], Fraction]) -> None:
    H, H_x, H_y = entropy(joint), entropy(marginal(joint, 0)), entropy(marginal(joint, 1))
    turned = {(y, x): p for (x, y), p in joint.items()}
    assert H == pytest.approx(H_y + conditional_entropy(joint), abs=ROUNDING)
    assert mutual_information(joint) == pytest.approx(H_x + H_y - H, abs=ROUNDING)
    assert mutual_information(turned) == pytest.approx(mutual_information(joint), abs=ROUNDING)
    assert 0 <= mutual_information(joint) <= min(H_x, H_y) + ROUNDING


@given(joints(), channels())
def test_no_channel_adds_information(
    joint: dict[tuple[int, int], Fraction], channel: dict[int, dict[int, Fraction]]
) -> None:
    """`dpi`: I(X;Z) <= I(X;Y) for X -> Y -> Z, with equality exactly where Y and X are independent given Z."""
    found = data_processing(joint, channel)
    assert found.after <= found.before + ROUNDING
    # Z tells all that Y does iff X and Y are independent given Z: from the joint of all three, exactly.
    triple = {(x, y, z): p * q for (x, y), p in joint.items() for z, q in channel[y].items()}
    for_z: dict[int, dict[tuple[int, int], Fraction]] = {}
    for (x, y, z), p in triple.items():
        for_z.setdefault(z, {})[x, y] = p
    independent = True
    for table in for_z.values():
        total = sum(table.values())
        left = {x: sum(p for (i, _), p in table.items() if i == x) for x in range(3)}
        right = {y: sum(p for (_, j), p in table.items() if j == y) for y in range(4)}
        independent &= all(
            table.get((x, y), 0) * total == left[x] * right[y] for x in range(3) for y in range(4)
        )
    assert found.lossless == independent
    if found.lossless:
        assert found.after == pytest.approx(found.before, abs=ROUNDING) and found.lost == 0.0
    else:
        # Denominators of at most 48 * 12 keep every loss far above rounding.
        assert found.lost > 1e-9


@given(joints(), channels())
def test_floats_and_fractions_are_processed_alike(
    joint: dict[tuple[int, int], Fraction], channel: dict[int, dict[int, Fraction]]
) -> None:
    """`dpi` on arrays: the same numbers and the same verdict."""
    kernel = np.zeros((4, 3))
    for y, row in channel.items():
        kernel[y, list(row)] = [float(p) for p in row.values()]
    exact, floats = data_processing(joint, channel), data_processing(dense(joint), kernel)
    assert floats.lossless == exact.lossless
    assert floats.before == pytest.approx(exact.before, abs=ROUNDING)
    assert floats.after == pytest.approx(exact.after, abs=ROUNDING)
    product = dense(joint) @ kernel
    for (x, z), p in processed(joint, channel).items():
        assert product[x, z] == pytest.approx(float(p), abs=ROUNDING)


def test_a_map_that_merges_what_says_the_same_of_x_loses_nothing() -> None:
    """`dpi`, equality without injectivity: y = 1 and y = 2 give the same belief about x."""
    joint = {(0, 0): QUARTER, (1, 1): QUARTER, (0, 1): QUARTER / 2, (1, 2): QUARTER, (0, 2): QUARTER / 2}
    merged = data_processing(joint, {0: "a", 1: "b", 2: "b"})
    assert merged.lossless and merged.lost == 0.0
    assert merged.after == pytest.approx(merged.before, abs=ROUNDING) and merged.before > 0.1
    assert not data_processing(joint, {0: "a", 1: "a", 2: "b"}).lossless


def test_fractions_that_nearly_agree_are_told_apart_and_floats_that_differ_by_rounding_are_not() -> None:
    """`dpi`: the verdict is about the distributions, where the two numbers are too close to compare."""
    off = Fraction(1, 10**12)
    joint = {(0, 0): QUARTER, (1, 0): QUARTER, (0, 1): QUARTER + off, (1, 1): QUARTER - off}
    merge = {0: "z", 1: "z"}
    assert not data_processing(joint, merge).lossless
    assert data_processing({pair: float(p) for pair, p in joint.items()}, merge).lossless


def test_a_third_variable_that_sees_x_itself_breaks_the_inequality() -> None:
    """`dpi` needs the chain: Z = X although Y is blind."""
    blind = {(0, "-"): HALF, (1, "-"): HALF}
    assert mutual_information(blind) == 0.0 and mutual_information({(0, 0): HALF, (1, 1): HALF}) == 1.0


def test_a_row_of_the_channel_that_is_never_used_may_be_missing() -> None:
    assert data_processing({(0, 0): HALF, (1, 1): HALF, (1, 2): 0}, {0: "a", 1: "b"}).lossless


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0.5, 0.4], "sums to 0.9, not 1"),
        ([Fraction(1, 3), Fraction(1, 3)], "sums to 0.666666666667, not 1"),
        ([1.5, -0.5], "-0.5 at 1"),
        ([math.nan, 1.0], "nan at 0"),
        ([math.inf], "inf at 0"),
        ({"a": "1/2", "b": HALF}, "'1/2' at 'a', not a number"),
        ({"a": True}, "True at 'a', not a number"),
        ([], "sums to 0, not 1"),
    ],
)
def test_what_is_no_distribution_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        entropy(wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mutual_information([0.5, 0.5]), r"shape \[X, Y\], not \(2,\)"),
        (lambda: mutual_information({0: HALF, 1: HALF}), r"outcome 0, not a pair"),
        (lambda: marginal({(0, 0): 1}, 2), "part 2"),
        (lambda: processed({(0, 5): 1}, [[1.0]]), "none for 5"),
        (lambda: processed({(0, 0): 1}, [1.0]), r"shape \[Y, Z\]"),
        (lambda: processed({(0, "y"): 1}, {"x": "z"}), "no row for 'y'"),
        (lambda: processed({(0, 0): 1}, [[0.5, 0.4]]), "row 0 sums to 0.9"),
    ],
)
def test_what_is_no_joint_distribution_or_channel_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        call()
