"""A model as Cassandra text that reads back exactly; imports pomdp.model, rational and cassandra_tokens.

The format knows decimals only. A row of probabilities n_i / D without finite decimals is written as n_i c
with a decimal c near 1 / D: whoever divides a row by its exact sum, as `pomdp.cassandra` does, has n_i / D
again, and everyone else has numbers that sum to 1 within 1e-11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from pomdp.cassandra_tokens import MAX_NAME, MAX_REWARD, RESERVED, FormatError, shown
from pomdp.model import POMDP
from pomdp.rational import MAX_DIGITS, MAX_EXPONENT, RationalMatrix

# What every reader of the format takes for a name; ours takes more.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_SCALE_DIGITS = 12  # of the decimal near 1 / D
_POSITIONAL = 60  # with more decimal places than this an exponent is easier to read


def write(model: POMDP) -> str:
    """The model as Cassandra text; `parse` of it has the same exact numbers, names, discount and cost flag.

    Raises FormatError for a name that the format cannot express, with one that it can, and for numbers of
    over 400 digits. A discount or reward without a finite decimal is written p/q, which is our extension.
    """
    states, actions, observations = (
        _names(kind, names)
        for kind, names in (
            ("state", model.states),
            ("action", model.actions),
            ("observation", model.observations),
        )
    )
    lines = ["# " + ascii(model.name)[1:-1]] if model.name else []
    if model.exact.discount is not None:
        lines.append(f"discount: {_number(model.exact.discount, 'the discount')}")
    lines.append(f"values: {'cost' if model.cost else 'reward'}")
    for kind, names in (("states", states), ("actions", actions), ("observations", observations)):
        lines.append(f"{kind}: {len(names) if names[0] == '0' else ' '.join(names)}")
    lines.append(_start(model.exact.start, states))
    lines += ["", *_kernel("T", model.exact.T, (actions, states, states))]
    lines += ["", *_kernel("O", model.exact.Z, (actions, states, observations))]
    lines += ["", *_rewards(model.exact.R, -1 if model.cost else 1, actions, states)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _names(kind: str, names: Sequence[str]) -> Sequence[str]:
    """The names, all of them legal, or '0', '1', ... of a count."""
    if all(name == str(i) for i, name in enumerate(names)):
        return names
    for name in names:
        if not _legal(name):
            near = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[: MAX_NAME - 2]
            near = near if _legal(near) else f"{kind[0]}_{near}"
            raise FormatError(
                f"{kind} {shown(name)} cannot be written: a name is a letter, then letters, digits, '_', '-' "
                f"(at most {MAX_NAME} in all) and no word of the grammar; rename it, say, to {shown(near)}"
            )
    return names


def _legal(name: str) -> bool:
    """Whether every reader of the format takes the name."""
    return len(name) <= MAX_NAME and _NAME.fullmatch(name) is not None and name not in RESERVED


def _start(start: dict[int, Fraction], states: Sequence[str]) -> str:
    """The start section, in words where it is uniform over some states."""
    if len(set(start.values())) == 1:
        if len(start) == len(states):
            return "start: uniform"
        return "start include: " + " ".join(states[s] for s in sorted(start))
    row = RationalMatrix.from_rows([start], len(states))
    texts = ["0"] * len(states)
    for s, text in zip(row.indices.tolist(), _row(row, 0, "the start"), strict=True):
        texts[s] = text
    return "start: " + " ".join(texts)


def _kernel(
    label: str, matrices: Sequence[RationalMatrix], names: tuple[Sequence[str], Sequence[str], Sequence[str]]
) -> Iterator[str]:
    """The statements of T or O: one for all actions if they agree, a word where there is one, or entries."""
    actions, states, columns = names
    alike = all(_equal(matrix, matrices[0]) for matrix in matrices[1:])
    for action, matrix in zip(["*"] if alike else actions, matrices, strict=False):
        if label == "T" and _identity(matrix):
            yield f"T: {action} identity"
        elif _uniform(matrix):
            yield f"{label}: {action} uniform"
        else:
            for s, state in enumerate(states):
                head = f"{label}: {action} : {state} : "
                span = slice(matrix.indptr[s], matrix.indptr[s + 1])
                texts = _row(matrix, s, f"{label} row [{action}, {state}]")
                for j, text in zip(matrix.indices[span].tolist(), texts, strict=True):
                    yield f"{head}{columns[j]} {text}"


def _rewards(
    rewards: RationalMatrix, sign: int, actions: Sequence[str], states: Sequence[str]
) -> Iterator[str]:
    """The R statements of the nonzero rewards, one for all states where they agree."""
    for a, action in enumerate(actions):
        row = rewards.row(a)
        if len(row) == len(states) and len(set(row.values())) == 1:
            yield f"R: {action} : * : * : * {_number(sign * row[0], f'the reward of {action}')}"
            continue
        for s, value in row.items():
            number = _number(sign * value, f"the reward of [{action}, {states[s]}]")
            yield f"R: {action} : {states[s]} : * : * {number}"


def _row(matrix: RationalMatrix, i: int, where: str) -> list[str]:
    """The nonzero probabilities of row i in decimals, exactly or up to a factor near 1."""
    denominator = matrix.denominators[i]
    numerators = matrix.numerators[matrix.indptr[i] : matrix.indptr[i + 1]]
    places = _places(denominator)
    if places is None:
        places = len(_digits(denominator, where)) + _SCALE_DIGITS - 1
        # The nearest integer to 10^places / D: c = factor / 10^places.
        factor = (2 * 10**places + denominator) // (2 * denominator)
    else:
        factor = 10**places // denominator
    return [_scaled(n * factor, places, where) for n in numerators]


def _number(value: Fraction, where: str) -> str:
    """A number as a decimal where it has a finite one, else as p/q."""
    places = _places(value.denominator)
    if abs(value) > MAX_REWARD:
        raise FormatError(f"{where} cannot be written: it is larger than 1e300")
    if places is None:
        return f"{_digits(value.numerator, where)}/{_digits(value.denominator, where)}"
    return _scaled(value.numerator * (10**places // value.denominator), places, where)


def _places(denominator: int) -> int | None:
    """How many decimal places a fraction in lowest terms needs; None where no number of them is enough."""
    twos = (denominator & -denominator).bit_length() - 1
    fives, rest = 0, denominator >> twos
    while rest % 5 == 0:
        fives, rest = fives + 1, rest // 5
    return max(twos, fives) if rest == 1 else None


def _scaled(value: int, places: int, where: str) -> str:
    """value / 10^places in decimal text."""
    while places and value % 10 == 0:
        value, places = value // 10, places - 1
    digits, sign = _digits(abs(value), where), "-" if value < 0 else ""
    if not places:
        return sign + digits
    if places > _POSITIONAL:
        if places > MAX_EXPONENT:
            raise _too_long(where)
        return f"{sign}{digits}e-{places}"
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _digits(value: int, where: str) -> str:
    """An integer's decimal digits; FormatError where no reader would take them."""
    # Compared in bits first: turning a gigantic integer to text takes long.
    if value.bit_length() > 4 * MAX_DIGITS or len(text := str(value)) > MAX_DIGITS:
        raise _too_long(where)
    return text


def _too_long(where: str) -> FormatError:
    return FormatError(f"{where} cannot be written: it has numbers of over {MAX_DIGITS} digits; round them")


def _equal(one: RationalMatrix, other: RationalMatrix) -> bool:
    """Whether two matrices have the same numbers."""
    return one is other or all(
        np.array_equal(getattr(one, field), getattr(other, field))
        for field in ("indptr", "indices", "numerators", "denominators")
    )


def _identity(matrix: RationalMatrix) -> bool:
    """Whether a stochastic square matrix is the identity."""
    return np.array_equal(matrix.indices, np.arange(matrix.shape[0]))


def _uniform(matrix: RationalMatrix) -> bool:
    """Whether every row of a stochastic matrix is uniform over all columns."""
    rows, columns = matrix.shape
    return len(matrix.indices) == rows * columns and all(d == columns for d in matrix.denominators)
