"""Calculator: amounts and day counts from text, by a walk over the syntax tree of sums and products; imports errors.

Never `eval`: the text comes from a model whose context holds text of strangers. Numbers are exact (decimals are
fractions), so 0.1 + 0.2 is 0.3; bounded are the text's length, the nesting, the digits of every number on the way.
Source: M14 §3, Exercise 1 (numbers and + - * / ( ) only).
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

from harnesses.desk.tool_errors import Fix

LONGEST = 200
"""Characters of an expression."""
DEEPEST = 40
"""Operations and parentheses around one number."""
LARGEST = 10**15
"""No number on the way is larger, in absolute value."""
FINEST = 10**60
"""No fraction on the way has a larger denominator."""
DIGITS = 12
"""Significant digits of an answer that has no short decimal."""

EXAMPLE = "300 * 0.5"

_ALLOWED = re.compile(r"[0-9.+\-*/() ]*", re.ASCII)
_BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_UNARY: dict[type[ast.unaryop], Callable[[Fraction], Fraction]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def calculator(expression: str) -> str:
    """Work out an arithmetic expression such as '300 * 0.5' or '(45 - 30) * 2'. Numbers and + - * / ( ) only.

    Returns the value as a decimal number, rounded to 12 significant digits where it has no short decimal. For words,
    dates or percent signs it is of no use: write 20 % as 0.2. Raises Fix.
    """
    return as_decimal(value_of(expression))


def value_of(expression: str) -> Fraction:
    """The exact value. Raises Fix for what is no such expression, or is too long, too deep or too large."""
    if len(expression) > LONGEST:
        raise Fix(f"the expression has {len(expression)} characters, more than {LONGEST}; split it")
    odd = expression[len(_longest_allowed(expression)) :][:1]
    if odd:
        raise Fix(f"{odd!r} is no part of arithmetic; give numbers and + - * / ( ), such as {EXAMPLE}")
    # Each parenthesis, sign or operation nests at least one deeper: bounded before the parser recurses.
    if expression.count("(") > DEEPEST:
        raise Fix(f"the expression has more than {DEEPEST} parentheses; split it")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Fix(f"{expression!r} is no arithmetic expression; give one such as {EXAMPLE}") from None
    return _value(tree.body, expression, DEEPEST)


def as_decimal(value: Fraction) -> str:
    """Plain decimal text of a number: exact where at most 12 digits say it, else rounded to 12; no exponent."""
    found = Context(prec=DIGITS).divide(Decimal(value.numerator), Decimal(value.denominator))
    text = format(found, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _longest_allowed(expression: str) -> str:
    found = _ALLOWED.match(expression)
    return found.group() if found else ""


def _value(node: ast.expr, text: str, depth: int) -> Fraction:
    """The value of a node, at most `depth` levels above its numbers."""
    if depth == 0:
        raise Fix(f"the expression is nested more than {DEEPEST} deep; split it")
    if isinstance(node, ast.Constant):
        # The digits as written: the parser has already rounded them to a binary float.
        return _bounded(_number(ast.get_source_segment(text.strip(), node) or ""))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_value(node.operand, text, depth - 1))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, text, depth - 1), _value(node.right, text, depth - 1)
        if isinstance(node.op, ast.Div) and right == 0:
            raise Fix("the expression divides by zero")
        return _bounded(_BINARY[type(node.op)](left, right))
    raise Fix(f"only numbers and + - * / ( ) are allowed, such as {EXAMPLE}; no powers, calls or lists")


def _number(digits: str) -> Fraction:
    """What the digits say: 007 and 1. are no numbers that a person writes, but 0.5 and .5 are."""
    if not re.fullmatch(r"\d+(\.\d+)?|\.\d+", digits, re.ASCII):
        raise Fix(f"{digits!r} is no number; write one such as 0.5")
    return Fraction(digits)


def _bounded(value: Fraction) -> Fraction:
    if abs(value) > LARGEST or value.denominator > FINEST:
        raise Fix(f"a number on the way is larger than {LARGEST:g} or finer than can be kept")
    return value
