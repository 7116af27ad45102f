"""The forward pass against the same model in numpy, and what must not matter: padding, pieces, company, the future."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest

from harnesses.desk import llama
from harnesses.desk.llama import Config, LlamaError, Past, Weights

Make = Callable[[Config, int], Weights]
Plain = Callable[..., np.ndarray]

GROUPED = Config(layers=3, width=24, heads=6, kv_heads=2, hidden=20, vocabulary=31, rope_base=1e5)
CONFIGS = {
    "grouped": GROUPED,
    "a key for each head": Config(2, 16, 4, 4, 12, 17, rope_base=100.0, epsilon=1e-2),
    "one key": Config(1, 12, 3, 1, 8, 13, rope_base=1e4),
}
CLOSE = 2e-4
LONGEST = 12
"""Few shapes: compiling takes longer than computing."""


def ints(values: object) -> jnp.ndarray:
    return jnp.asarray(values, dtype=jnp.int32)


def row(config: Config, length: int, seed: int = 0) -> list[int]:
    return [int(n) for n in np.random.default_rng(seed).integers(0, config.vocabulary, length)]


def all_logits(config: Config, weights: Weights, tokens: list[int], past: Past | None = None) -> np.ndarray:
    padded = ints([[*tokens, *[0] * (LONGEST - len(tokens))]])
    state, _, _ = llama.extend(config, weights, past or llama.nothing(config), padded)
    return np.asarray(llama.logits(config, weights, state[0]))[: len(tokens)]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_logits_are_those_of_the_model_written_out_in_numpy(
    config: Config, seed: int, random_weights: Make, plain: Plain
) -> None:
    weights, tokens = random_weights(config, seed), row(config, 11, seed)
    wanted = plain(config, weights, tokens)
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(all_logits(config, weights, tokens), wanted, atol=CLOSE, rtol=CLOSE)


def test_a_later_token_changes_no_earlier_logit_and_its_own_place_matters(random_weights: Make) -> None:
    weights, tokens = random_weights(GROUPED, 0), row(GROUPED, 9)
    before = all_logits(GROUPED, weights, tokens)
    after = all_logits(GROUPED, weights, [*tokens[:6], (tokens[6] + 1) % GROUPED.vocabulary, *tokens[7:]])
    assert (before[:6] == after[:6]).all()
    assert (before[6:] != after[6:]).any(axis=1).all()
    swapped = all_logits(GROUPED, weights, [tokens[1], tokens[0], *tokens[2:]])
    assert np.abs(swapped[2:] - before[2:]).max() > 0.01


def test_what_stands_in_the_padding_does_not_matter(random_weights: Make) -> None:
    weights, tokens = random_weights(GROUPED, 0), row(GROUPED, 5)
    ends = [row(GROUPED, LONGEST - 5, seed) for seed in range(3)]
    table, counts = ints([[*tokens, *end] for end in ends]), ints([5, 5, 5])
    past = llama.nothing(GROUPED)
    found = np.asarray(llama.next_logits(GROUPED, weights, past, table, counts))
    scores = np.asarray(llama.log_probabilities(GROUPED, weights, past, table, counts))
    np.testing.assert_allclose(found[0], all_logits(GROUPED, weights, tokens)[-1], atol=CLOSE)
    assert (found == found[0]).all() and (scores == scores[0]).all()


@pytest.mark.parametrize("cuts", [(1, 2, 3), (7, 5), (1,) * 9])
def test_reading_in_pieces_is_reading_at_once(
    cuts: tuple[int, ...], random_weights: Make, plain: Plain
) -> None:
    weights, tokens = random_weights(GROUPED, 2), row(GROUPED, 12, 3)
    wanted, past, read = plain(GROUPED, weights, tokens), llama.nothing(GROUPED), 0
    for piece in (*cuts, len(tokens) - sum(cuts)):
        if piece <= 0:
            continue
        part = tokens[read : read + piece]
        padded = ints([*part, *[5] * (LONGEST - len(part))])  # what is written behind the end is written over
        past, state = llama.read_on(GROUPED, weights, past, padded, 32, ints(piece))
        read += len(part)
        assert int(past.length) == read
        logits = np.asarray(llama.logits(GROUPED, weights, state[None]))[0]
        np.testing.assert_allclose(logits, wanted[read - 1], atol=CLOSE, rtol=CLOSE)


def test_rows_that_share_a_past_read_as_each_alone(random_weights: Make, plain: Plain) -> None:
    weights, head = random_weights(GROUPED, 4), row(GROUPED, 6, 1)
    tails = [row(GROUPED, length, length) for length in (1, 3, 4)]
    past, _ = llama.read_on(GROUPED, weights, llama.nothing(GROUPED), ints(head * 2), 32, ints(6))
    table = ints([[*tail, *[0] * (LONGEST - len(tail))] for tail in tails])
    found = np.asarray(llama.next_logits(GROUPED, weights, past, table, ints([1, 3, 4])))
    for got, tail in zip(found, tails):
        np.testing.assert_allclose(got, plain(GROUPED, weights, head + tail)[-1], atol=CLOSE, rtol=CLOSE)


def test_log_probabilities_are_sums_over_the_softmax_of_numpy(random_weights: Make, plain: Plain) -> None:
    weights, head = random_weights(GROUPED, 5), row(GROUPED, 4, 1)
    rows = [row(GROUPED, length, 10 + length) for length in (2, 5)]
    past, _ = llama.read_on(GROUPED, weights, llama.nothing(GROUPED), ints(head * 3), 32, ints(4))
    table = ints([[*rows[0], 7, 7, 7], rows[1]])
    found = np.asarray(llama.log_probabilities(GROUPED, weights, past, table, ints([2, 5])))
    for got, tokens in zip(found, rows):
        logits = plain(GROUPED, weights, head + tokens)[len(head) : -1]
        table_of = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        wanted = sum(table_of[i, token] for i, token in enumerate(tokens[1:]))
        assert got == pytest.approx(wanted, abs=CLOSE, rel=CLOSE)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((1, 10, 3, 1, 8, 5), "width 10 does not split into 3 heads"),
        ((1, 9, 3, 1, 8, 5), "of an even size"),
        ((1, 16, 4, 3, 8, 5), "4 heads cannot share 3"),
        ((0, 16, 4, 2, 8, 5), "layers is 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: tuple[int, ...], said: str) -> None:
    with pytest.raises(LlamaError, match=said):
        Config(*sizes)


def test_arrays_that_do_not_fit_are_refused(random_weights: Make) -> None:
    good = random_weights(GROUPED, 0)
    with pytest.raises(LlamaError, match=r"key has the shape \(3, 24, 24\), not \(3, 8, 24\)"):
        llama.checked(GROUPED, good._replace(blocks=good.blocks._replace(key=good.blocks.query)))
    with pytest.raises(LlamaError, match="final_norm"):
        llama.checked(GROUPED, good._replace(final_norm=np.full(24, np.nan)))
