"""The one door of models: every accepted form gives the same numbers, wrong entries are named."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse import coo_array, csr_array

from pomdp.model import POMDP, ModelError
from pomdp.rational import RationalMatrix
from pomdp.testing import pomdps

FLIP = [[0, 1], [1, 0]]
BLIND = [[1], [1]]


def build(**changes) -> POMDP:
    """Two states that one action swaps."""
    fields = {"states": 2, "actions": ["go"], "observations": 1, "T": [FLIP], "Z": [BLIND], "R": [[0, 1]]}
    return POMDP.build(**fields | changes)


def rebuilt(model: POMDP, **changes) -> POMDP:
    """The model through the door again, with other forms of its parts."""
    e = model.exact
    fields = {
        "states": model.states,
        "actions": model.actions,
        "observations": model.observations,
        "T": e.T,
        "Z": e.Z,
        "R": e.R,
        "start": e.start,
        "discount": e.discount,
    }
    return POMDP.build(**fields | changes)


@given(pomdps())
def test_every_form_of_a_matrix_gives_the_same_model(model):
    rows = [list(m.rows()) for m in model.exact.T]
    dense = [
        [[row.get(j, Fraction(0)) for j in range(model.num_states)] for row in matrix] for matrix in rows
    ]
    texts = [[[str(x) for x in row] for row in matrix] for matrix in dense]
    for form in (rows, dense, texts, model.exact.T):
        again = rebuilt(model, T=form)
        assert again.digest == model.digest and again.normalised_rows == 0


@given(pomdps())
def test_floats_come_back_within_a_rounding_that_is_counted(model):
    """1/3 as a float is not 1/3: its row is divided by its sum and counted, sparse or dense alike."""
    dense = rebuilt(model, T=[m.toarray() for m in model.T])
    sparse = rebuilt(model, T=[coo_array(m) for m in model.T])
    assert dense.digest == sparse.digest and dense.normalised_rows == sparse.normalised_rows
    for one, other in zip(dense.T, model.T, strict=True):
        np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-15)
    for matrix in dense.exact.T:
        assert all(total == 1 for total in matrix.row_sums())


@given(pomdps())
def test_floats_are_the_nearest_to_the_exact_numbers(model):
    for floats, exact in zip((*model.T, *model.Z), (*model.exact.T, *model.exact.Z), strict=True):
        assert isinstance(floats, csr_array) and floats.dtype == np.float64
        for i, row in enumerate(exact.rows()):
            assert dict(enumerate(floats.toarray()[i])) == {
                j: float(row.get(j, 0)) for j in range(floats.shape[1])
            }
    assert model.start.tolist() == [float(model.exact.start.get(s, 0)) for s in range(model.num_states)]


@given(pomdps(max_states=3, max_observations=2))
def test_rewards_of_what_follows_are_reduced_to_their_expectation(model):
    S, A, O = model.num_states, model.num_actions, model.num_observations
    table = np.array(
        [(a + 1) * s - 3 * t + o for a in range(A) for s in range(S) for t in range(S) for o in range(O)]
    )
    table = table.reshape(A, S, S, O)
    expected = [
        np.einsum("st,to,sto->s", model.T[a].toarray(), model.Z[a].toarray(), table[a]) for a in range(A)
    ]
    np.testing.assert_allclose(rebuilt(model, R=table).R, expected, atol=1e-12)
    np.testing.assert_allclose(
        rebuilt(model, R=table[..., 0]).R,
        [(model.T[a].toarray() * table[a, :, :, 0]).sum(axis=1) for a in range(A)],
        atol=1e-12,
    )


@given(pomdps(max_observations=3))
def test_a_blinded_model_differs_in_its_observations_alone(model):
    blind = model.blinded()
    assert blind.observations == ("-",) and all((z.toarray() == 1).all() for z in blind.Z)
    assert [m.text() for m in blind.exact.T] == [m.text() for m in model.exact.T]
    assert (blind.exact.start, blind.exact.discount) == (model.exact.start, model.exact.discount)
    assert blind.exact.R.text() == model.exact.R.text() and blind.blinded().digest == blind.digest


def test_decimals_are_exact():
    model = build(T=[[[0.1, 0.9], ["0.3", "7/10"]]], R=[[0.1, -1e-3]], discount=0.95)
    assert model.exact.T[0].row(0) == {0: Fraction(1, 10), 1: Fraction(9, 10)}
    assert model.exact.R.row(0) == {0: Fraction(1, 10), 1: Fraction(-1, 1000)}
    assert model.exact.discount == Fraction(19, 20) and model.normalised_rows == 0


def test_a_row_near_one_is_divided_by_its_exact_sum_and_counted():
    model = build(T=[[["0.333333", "0.666666"], [1, 0]]])
    assert model.exact.T[0].row(0) == {0: Fraction(333333, 999999), 1: Fraction(666666, 999999)}
    assert model.normalised_rows == 1
    edge = build(T=[[["0.5", "0.50001"], [1, 0]]])  # exactly the tolerance
    assert edge.normalised_rows == 1


def test_the_digest_hashes_numbers_and_nothing_else():
    model = build(discount="0.9")
    assert build(discount="0.9", states=["a", "b"], name="x", actions=["stop"]).digest == model.digest
    others = [
        build(discount="0.8"),
        build(),
        build(discount="0.9", R=[[0, 2]]),
        build(discount="0.9", start="0"),
        build(discount="0.9", T=[[["0.0000001", "0.9999999"], [1, 0]]]),
    ]
    assert len({m.digest for m in [model, *others]}) == 6
    assert model.with_discount("0.8").digest == others[0].digest
    assert model.with_start("0").digest == others[3].digest


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (None, {0: Fraction(1, 2), 1: Fraction(1, 2)}),
        ("1", {1: Fraction(1)}),
        ([0.25, 0.75], {0: Fraction(1, 4), 1: Fraction(3, 4)}),
        ({1: 1}, {1: Fraction(1)}),
        (np.array([1.0, 0.0]), {0: Fraction(1)}),
    ],
)
def test_every_form_of_a_start(start, expected):
    assert build(start=start).exact.start == expected == build().with_start(start).exact.start


def test_names_lead_to_indices_and_unknown_ones_to_near_ones():
    model = build(states=["tiger-left", "tiger-right"])
    assert model.state_index("tiger-right") == 1 and model.action_index("go") == 0
    assert model.observation_index("0") == 0
    with pytest.raises(ModelError, match="no state 'tiger-rigth'; known: tiger-right"):
        model.state_index("tiger-rigth")
    with pytest.raises(ModelError, match="no action 'x'; known: go"):
        model.action_index("x")


def test_a_terminal_state_stays_and_earns_nothing():
    stay = [[1, 0], [0, 1]]
    model = build(actions=2, T=[stay, stay], Z=[BLIND] * 2, R=[[0, 0], [0, 1]])
    assert model.terminal.tolist() == [True, False]
    assert build().terminal.tolist() == [False, False]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"T": [[[0, "0.98"], [1, 0]]]},
            r"transition row \[go, 0\] sums to 0\.98, not 1; a right one is \{1: 1\}",
        ),
        ({"T": [[["0.5", "0.50002"], [1, 0]]]}, r"transition row \[go, 0\] sums to 1\.00002"),
        ({"T": [[[0, 0], [1, 0]]]}, r"transition row \[go, 0\] sums to 0"),
        (
            {"T": [[[1, 0], ["1.5", "-0.5"]]]},
            r"transition row \[go, 1\] has the negative probability -0\.5 in column 1",
        ),
        ({"Z": [[["0.9"], [1]]]}, r"observation row \[go, 0\] sums to 0\.9"),
        ({"T": [FLIP, FLIP]}, "T has 2 matrices for 1 actions"),
        ({"T": [[[1, 0]]]}, r"transition row \[go: matrix has shape \(1, 2\), not \(2, 2\)"),
        ({"T": [[[1, 0], [1]]]}, "shape"),
        ({"T": [[{2: 1}, {0: 1}]]}, "column 2 is outside 0..1"),
        ({"T": [[["x", 0], [1, 0]]]}, "'x' is not a number"),
        ({"T": [[[float("nan"), 0], [1, 0]]]}, "nan"),
        ({"R": [[0, 1, 2]]}, r"R has shape \(1, 3\)"),
        ({"R": [[0, "a lot"]]}, r"R\[0, 1\]: 'a lot' is not a number"),
        ({"R": [[0, float("inf")]]}, r"R\[0, 1\]"),
        ({"R": RationalMatrix.from_rows([{}], 3)}, r"R has shape \(1, 3\)"),
        ({"start": [1]}, "start has 1 entries for 2 states"),
        ({"start": ["0.5", "0.6"]}, "start sums to 1.1"),
        ({"start": {5: 1}}, "start has"),
        ({"start": "5"}, "no state '5'; known: 0, 1"),
        ({"discount": "1.01"}, "discount 1.01 is outside"),
        ({"discount": -1}, "discount -1 is outside"),
        ({"discount": "often"}, "discount: 'often'"),
        ({"states": 0}, "at least one state"),
        ({"actions": []}, "at least one action"),
        ({"states": ["a", "a"]}, "state 'a' is named twice"),
    ],
)
def test_a_wrong_entry_is_named(changes, words):
    with pytest.raises(ModelError, match=words) as caught:
        build(**changes)
    assert "\n" not in str(caught.value)


def test_the_representation_is_one_line():
    assert (
        repr(build(name="swap", discount="0.5"))
        == "POMDP(swap: 2 states, 1 actions, 1 observations, discount 0.5)"
    )
