"""Every wrong Cassandra file is refused with its line, what was found there and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from pomdp.cassandra import FormatError, Limits, parse, read

HEAD = """\
discount: 0.9
values: reward
states: left right
actions: stay go
observations: dark light
"""
WHOLE = HEAD + "T: * identity\nO: * uniform\n"
BODY = "states: 2\nactions: 1\nobservations: 1\nT: 0 identity\nO: 0 uniform\n"

# Text, line of the error, parts of its message.
ERRORS = {
    "empty": ("", 1, "the end of the file", "`states:`"),
    "only comments": ("# a\n# b\n", 2, "the end of the file", "`states:`"),
    "no observations": ("states: 2\nactions: 2\n", 2, "`observations:` before it"),
    "table before sizes": ("states: 2\nT: 0 identity\n", 2, "found 'T'", "`actions:` before it"),
    "unknown section": ("discount: 1\ncolour: 3\n", 2, "found 'colour' after the discount", "`discount:`"),
    "no colon": ("discount 0.9\n", 1, "found '0.9' after 'discount'", "':'"),
    "discount above 1": ("discount: 1.5\n", 1, "discount '1.5'", "between 0 and 1 such as 0.95"),
    "discount below 0": ("\n\ndiscount: -0.1\n", 3, "discount '-0.1'", "between 0 and 1"),
    "discount a word": ("discount: high\n", 1, "found 'high'", "such as 0.95"),
    "discount cut off": ("states: 2\ndiscount:", 2, "the end of the file", "such as 0.95"),
    "discount twice": ("discount: 0.9\n\ndiscount: 0.9\n", 3, "a second 'discount'", "first is in line 1"),
    "values of another kind": ("values: money\n", 1, "found 'money'", "'reward' or 'cost'"),
    "values cut off": ("values:", 1, "the end of the file", "'reward' or 'cost'"),
    "no states": ("states: 0\n", 1, "found 0 states", "1 to 1000000"),
    "negative count": ("states: -3\n", 1, "found '-3'", "the number of states (1 to 1000000)"),
    "fractional count": ("actions: 2.5\n", 1, "found '2.5'", "a number cannot be a name"),
    "gigantic count": ("states: " + "9" * 5000, 1, "found '9999", "the number of states"),
    "count and names": ("states: 2 left right\n", 1, "found 'left' after the count of states"),
    "no names": ("states:\nactions: 2\n", 2, "found 'actions'", "the number of states"),
    "name twice": ("states: a\n b\n a\n", 3, "state 'a' a second time"),
    "number as name": ("states: a 7 b\n", 1, "found '7'", "state 1", "a number cannot be a name"),
    "word of the grammar as name": ("actions: go reset\n", 1, "found 'reset'", "a word of the grammar"),
    "colon in names": ("states: a b\nfoo: 3\n", 2, "found ':'", "or a section"),
    "long name": ("states: " + "a" * 201, 1, "at most 200 characters"),
    "states twice": ("states: 2\nstates: 2\n", 2, "a second 'states'"),
    "start of nothing": (BODY + "start:\nR: 0 : 0 : * : * 1", 7, "found 'R'", "'uniform'"),
    "start cut off": (BODY + "start:", 6, "the end of the file", "'uniform'"),
    "start unknown": (WHOLE + "start: lefty\n", 8, "'lefty' in the start", "a state such as left"),
    "start too short": ("start: 0.5\n0.4\n" + WHOLE.replace("ft", "ft up"), 2, "2 numbers", "3 prob"),
    "start too long": (BODY + "start: 0.5 0.25 0.25", 6, "3 numbers in the start", "2 probabilities"),
    "start sums to 0.9": (BODY + "start: 0.5\n 0.4", 7, "a start that sums to 0.9", "expected 1"),
    "start negative": (BODY + "start: 1.5\n -0.5", 6, "probability '1.5'", "between 0 and 1"),
    "start of zeros": (BODY + "start: 0 0", 6, "a start that sums to 0", "`start: uniform`"),
    "start index outside": (BODY + "start: 5", 6, "'5' as the start", "2 probabilities"),
    "start names and numbers": (WHOLE + "start: left 1", 8, "'1' in the start"),
    "start numbers and names": (WHOLE + "start: 0.5 left", 8, "'left' in the start"),
    "start excludes all": (BODY + "start exclude: 0 1", 6, "excludes every state"),
    "start includes unknown": (BODY + "start include:\n0\n2", 8, "'2' in the start", "a state from 0 to 1"),
    "start of a wildcard": (BODY + "start: *", 6, "'*' in the start"),
    "start without colon": (BODY + "start include 0", 6, "found '0' after 'start include'", "':'"),
    "start twice": (BODY + "start: 0\nstart: 1", 7, "a second 'start'", "line 6"),
    "misspelt action": (HEAD + "T: staay identity", 6, "found 'staay'", "an action such as stay"),
    "misspelt state": (HEAD + "T: stay :\n\nleftt 1 0", 8, "found 'leftt'", "a state such as left"),
    "misspelt observation": (HEAD + "O: stay : left : lihgt 1", 6, "an observation such as light"),
    "state where an observation goes": (HEAD + "O: stay : left : left 1", 6, "found 'left'", "dark, light"),
    "unknown name": (HEAD + "T: zzz identity", 6, "found 'zzz'", "one of the actions stay, go"),
    "index outside": (HEAD + "T: 2 identity", 6, "found '2'", "one of the actions stay, go"),
    "index outside of a count": (BODY + "T: 0 : 2 1 0", 6, "found '2'", "a state from 0 to 1"),
    "index with a leading zero": (BODY + "T: 00 identity", 6, "found '00'", "an action from 0 to 0"),
    "index cut off": (HEAD + "T: stay :", 6, "the end of the file", "one of the states left, right"),
    "no index": (HEAD + "T: : left 1 0", 6, "found ':'", "one of the actions"),
    "four indices for T": (HEAD + "T: go : left : right : dark 1", 6, "found ':'", "a probability"),
    "five indices for R": (HEAD + "R: go : left : right : dark : 1 5", 6, "found ':'", "a reward"),
    "probability missing": (HEAD + "T: go : left : right\n\nT: go uniform", 8, "found 'T'", "a probability"),
    "probability cut off": (HEAD + "T: go : left : right\n\n", 7, "the end of the file", "a probability"),
    "probability above 1": (HEAD + "T: go : left : right 1.1", 6, "probability '1.1'", "between 0 and 1"),
    "probability below 0": (HEAD + "T: go\n1 0\n1.0 -0.0001", 8, "probability '-0.0001'", "between 0 and 1"),
    "probability a word": (HEAD + "T: go : left : right high", 6, "found 'high'", "a probability"),
    "row too short": (HEAD + "T: go : left\n1\nT: stay identity", 8, "'T'", "number 2 of 2 of the T row"),
    "row too long": (HEAD + "T: go : left\n1 0\n0.5", 8, "found '0.5' after a complete T row", "a section"),
    "matrix too short": (HEAD + "O: go\n1 0\n0.5", 8, "the end of the file", "2 of 2 of row 1 of the O"),
    "matrix too long": (HEAD + "T: go\n1 0\n0 1\n0 0", 9, "found '0' after a complete T matrix"),
    "entry and more": (HEAD + "T: go : left : right 0.5 0.5", 6, "found '0.5' after the probability"),
    "identity of a row": (HEAD + "T: go : left identity", 6, "found 'identity'", "number 1 of 2"),
    "identity of O": ("states: 2\nactions: 1\nobservations: 3\nO: 0\nidentity", 5, "'identity'", "as many"),
    "reset of O": (HEAD + "O: stay reset", 6, "found 'reset'", "number 1 of 2"),
    "uniform of R": (HEAD + "R: go : left : right uniform", 6, "found 'uniform'", "number 1 of 2"),
    "reward cut off": (HEAD + "R: go : left : right : dark", 6, "the end of the file", "a reward"),
    "reward row too short": (HEAD + "R: go : left : right\n5", 7, "number 2 of 2 of the R row"),
    "reward matrix too short": (HEAD + "R: go : left\n1 2 3\nT: go uniform", 8, "'T'", "row 1 of the R"),
    "reward matrix too long": (HEAD + "R: go\n1 2 3 4\n5 6 7 8\n9", 9, "found '9' after a complete R matrix"),
    "reward twice": (HEAD + "R: go : * : * : * 5 6", 6, "found '6' after the number of an R entry"),
    "reward too large": (HEAD + "R: go : * : * : * 1e301", 6, "'1e301'", "-1e300 and 1e300"),
    "exponent too large": (HEAD + "R: go : * : * : * 1e999999999", 6, "'1e999999999'", "exponent within"),
    "exponent too small": (HEAD + "T: go : 0 : 0 1e-999999999", 6, "found '1e-999999999'", "exponent within"),
    "too many digits": (HEAD + "R: go : * : * : * 0." + "1" * 5000, 6, "found '0.111", "400 digits"),
    "division by zero": (HEAD + "R: go : * : * : * 1/0", 6, "found '1/0'"),
    "not a number": (HEAD + "R: go : * : * : * nan", 6, "found 'nan'", "a reward"),
    "infinite": (HEAD + "R: go : * : * : * -inf", 6, "found '-inf'", "a reward"),
    "underscores": (HEAD + "R: go : * : * : * 1_000", 6, "found '1_000'", "a reward"),
    "hexadecimal": (HEAD + "R: go : * : * : * 0x10", 6, "found '0x10'", "a reward"),
    "sum of an entry": (WHOLE + "T: go : left : right 0.5\n\n", 8, "row [go, left] that sums to 1.5",
                        "`T: go : left : left 0.666667`"),
    "sum of a row": (WHOLE + "O: go : left\n.5\n.4", 10, "observation row [go, left] that sums to 0.9",
                     "`O: go : left : dark 0.555556`"),
    "sum of a matrix": (WHOLE + "T: go\n1 0\n0.5 0.49\n", 10, "row [go, right] that sums to 0.99"),
    "sum just outside the tolerance": (WHOLE + "T: go : left\n0.5 0.499989", 9, "sums to 0.999989"),
    "sum of nothing": (WHOLE + "T: go : left : left 0", 8, "sums to 0,", "`T: go : left : left 1`"),
    "rows that nobody gave": (HEAD + "T: stay identity\nO: * uniform\n# end", 8,
                              "no transition row [go, left]", "`T: go : left : left 1`"),
    "observations that nobody gave": (HEAD + "T: * identity", 6, "no observation row [stay, left]"),
    "junk": ("\x00\x01\x02", 1, "found '\\x00\\x01\\x02'", "a section"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_error_says_line_and_what_was_expected(case: str) -> None:
    text, line, *fragments = ERRORS[case]
    with pytest.raises(FormatError) as caught:
        parse(text, name="task.pomdp")
    message = str(caught.value)
    assert message.startswith(f"task.pomdp:{line}: found ") and ", expected " in message
    assert caught.value.line == line
    assert all(fragment in message for fragment in fragments), message
    assert "\n" not in message and len(message) < 400


def test_line_endings_of_other_systems_count_the_same() -> None:
    text, line, *_ = ERRORS["matrix too long"]
    for ending in ("\r\n", "\r"):
        with pytest.raises(FormatError) as caught:
            parse(text.replace("\n", ending))
        assert caught.value.line == line


# A limit, a text that goes past it, the line, a part of the message.
BEYOND = {
    "characters": (Limits(characters=100), WHOLE, 6, "a longer file"),
    "states": (Limits(states=1), HEAD, 3, "more than 1 states"),
    "states by count": (Limits(states=1), BODY, 1, "2 states"),
    "actions": (Limits(actions=1), HEAD, 4, "more than 1 actions"),
    "observations": (Limits(observations=1), HEAD, 5, "more than 1 observations"),
    "entries before any": (Limits(entries=7), WHOLE, 6, "2 states x 2 actions, which need 8"),
    "entries": (Limits(entries=11), WHOLE, 7, "12 nonzero entries"),
    "entries of reset": (Limits(entries=5), BODY + "T: 0 reset", 6, "6 nonzero entries"),
    "entries of R": (Limits(entries=13), WHOLE + "R: go : left : 0 1 2", 8, "14 nonzero entries"),
    "steps": (Limits(steps=10), HEAD + "T: * uniform\nO: * uniform", 7, "expand to 16 steps"),
    "steps of wildcards": (Limits(steps=10), HEAD + "T: * : * : left 1\n" * 3, 8, "expand to 12 steps"),
    "steps of rewards": (Limits(steps=50), WHOLE + "R: * : * : * : dark 1", 8, "steps"),
    "bits": (Limits(bits=20), WHOLE + "T: 0 : 0 0.0000001 0.9999999", 8, "transition row [stay, left]"),
    "bits of a reward": (Limits(bits=20), WHOLE + "R: 1 : 0 : 0 1/1009 1/2003", 8, "reward of [go, left]"),
    "bits of rewards": (Limits(bits=20), WHOLE + "R: 1 : 0 : * : * 1/1009\nR: 1 : 1 : * : * 1/2003", 9,
                        "rewards of action go"),
    "bits in all": (Limits(total_bits=10), WHOLE, 7, "in all"),
}  # fmt: skip


@pytest.mark.parametrize("case", BEYOND)
def test_limit_is_named_with_the_line_that_passes_it(case: str) -> None:
    limits, text, line, fragment = BEYOND[case]
    with pytest.raises(FormatError) as caught:
        parse(text, limits=limits)
    message = str(caught.value)
    assert message.startswith(f"<text>:{line}: found ") and fragment in message, message
    assert "Limits." in message


def test_unreadable_file_is_a_format_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pomdp", tmp_path, tmp_path / "a\x00b"):
        with pytest.raises(FormatError, match="no readable file"):
            read(path)


def test_error_in_a_file_names_it(tmp_path: Path) -> None:
    file = tmp_path / "task.pomdp"
    file.write_text("states: 2\nactions: 0\n")
    with pytest.raises(FormatError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}:2: ")
