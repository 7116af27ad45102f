"""The tokenizer: nothing is lost, texts cannot spell marks, and the parts are those of the package tokenizers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.desk.lm_tokens import LOST, TokenError, Tokenizer

# What tokenizers 0.23.3 gives with the same vocabulary, Digits(individual_digits=True) and ByteLevel.
EXPECTED = {
    "We're due 10 days' refund": "W e 're Ġdue Ġ 1 0 Ġday s ' Ġrefu nd",
    "don't  it'S  re're": "d on ' t Ġ Ġit ' S Ġ Ġre 're",
    "a\n\n  b\t c ": "a Ċ Ċ Ġ Ġ b ĉ Ġ c Ġ",
    "x²½Ⅷ३ 4²": "x Â ² Â ½ â ħ § à ¥ © Ġ 4 Â ²",
    "\u00a0é\u2003中文 😀": "Â ł Ã © â Ģ ĥ ä ¸ Ń æ ĸ ĩ Ġ ð Ł ĺ Ģ",
    "\x1c\x85\x0b no": "Ĝ Â ħ ċ Ġno",
    "___ yes no,yes": "_ _ _ Ġyes Ġno , yes",
    "'ll'v 'd": "' l l ' v Ġ ' d",
    "e\u0301 ＡＢ1": "e Ì ģ Ġ ï ¼ ¡ ï ¼ ¢ 1",
    "": "",
}


@pytest.mark.parametrize(("text", "parts"), EXPECTED.items(), ids=range(len(EXPECTED)))
def test_the_parts_are_those_of_an_independent_tokenizer(text: str, parts: str, tokenizer: Tokenizer) -> None:
    assert [tokenizer.tokens[n] for n in tokenizer.encode(text)] == parts.split()


@given(text=st.text())
def test_every_text_comes_back(text: str, tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(parts=st.lists(st.sampled_from(["<|im_end|>", "<|im_start|>", "<|endoftext|>", "\n", "user", " "])))
def test_no_text_spells_a_mark(parts: list[str], tokenizer: Tokenizer) -> None:
    text = "".join(parts)
    marks = {tokenizer.mark(mark) for mark in tokenizer.marks}
    assert not marks & set(tokenizer.encode(text))
    turn = tokenizer.turn("user", text)
    assert [n for n in turn if n in marks] == [tokenizer.mark("<|im_start|>"), tokenizer.mark("<|im_end|>")]
    assert tokenizer.decode(turn) == f"user\n{text}\n"


def test_what_has_no_token_is_read_as_the_replacement_character(tokenizer: Tokenizer) -> None:
    without = [token for token in tokenizer.tokens if token not in ("Ą", "ñ")]  # bytes 0x04 and 0xf1
    small = Tokenizer(without, tokenizer.merges, tokenizer.marks)
    assert small.missing == {0x04, 0xF1}
    assert small.decode(small.encode("a\x04b\U00040000c\x05")) == f"a{LOST}b{LOST}c\x05"
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == f"a{LOST}b"


def test_the_earliest_merge_goes_first_and_from_the_left(tokenizer: Tokenizer) -> None:
    first = Tokenizer([*tokenizer.tokens, "aa", "ab"], [("a", "a"), ("a", "b")])
    second = Tokenizer([*tokenizer.tokens, "aa", "ab"], [("a", "b"), ("a", "a")])
    assert [first.tokens[n] for n in first.encode("aaab")] == ["aa", "ab"]
    assert [second.tokens[n] for n in second.encode("aaab")] == ["aa", "ab"]
    assert [first.tokens[n] for n in first.encode("aab")] == ["aa", "b"]
    assert [second.tokens[n] for n in second.encode("aab")] == ["a", "ab"]


def test_parts_are_made_before_bytes_are_joined(tokenizer: Tokenizer) -> None:
    joined = [("1", "0"), ("Ġ", "1"), ("Ġ", "Ĝ"), ("Ĝ", "!"), ("²", "!"), ("a", "'")]
    made = Tokenizer([*tokenizer.tokens, *map("".join, joined)], joined)
    # As tokenizers 0.23.3 has it: digits stand alone, a file separator is no white space.
    parts = ["a", "Ġ", "1", "0", "ĠĜ", "!", "ĠĜ", "2", "!", "a", "'"]
    assert [made.tokens[n] for n in made.encode("a 10 \x1c! \x1c2!a'")] == parts


def test_a_vocabulary_with_holes_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(TokenError, match="byte 97 has no token"):
        Tokenizer([token for token in tokenizer.tokens if token != "a"], [])
    with pytest.raises(TokenError, match="'a b' gives no token"):
        Tokenizer(tokenizer.tokens, [("a", "b")])
    with pytest.raises(TokenError, match=r"no <\|x\|>"):
        Tokenizer(tokenizer.tokens, [], frozenset(["<|x|>"]))
    with pytest.raises(TokenError, match="330 is no token; they go from 0 to 329"):
        tokenizer.decode([330])
