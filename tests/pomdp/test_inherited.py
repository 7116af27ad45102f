"""Inherited values in a certificate: a mixture of earlier points is a bound, a circle of them is none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from pomdp.bounds import solve
from pomdp.certificate import INHERITED, Certificate, Point
from pomdp.check import check
from pomdp.criterion import Criterion
from pomdp.model import POMDP

CRITERION = Criterion(Fraction(19, 20))


@pytest.fixture(scope="module")
def proved(tiger) -> tuple[POMDP, Certificate]:
    """Tiger and a certificate of it."""
    model = tiger()
    certificate = solve(model, CRITERION, gap=1e-3).certificate
    assert check(certificate, model).valid
    return model, certificate


def with_points(
    certificate: Certificate, points: list[Point], rows: dict[int, dict[int, int]]
) -> Certificate:
    """The certificate with more points, whose every value is inherited by the given rows (new point -> row)."""
    old = certificate.points
    first = 2 + len(old.points)
    weights = dict(old.weights)
    for k, row in rows.items():
        for a in range(3):
            weights[first + k, a, INHERITED] = row
    return replace(certificate, points=replace(old, points=(*old.points, *points), weights=weights))


def halfway(certificate: Certificate, lower_by: Fraction = Fraction(0)) -> Point:
    """The middle of the simplex with the mean of the corners' values, less `lower_by`."""
    p = certificate.points
    half = 1 << (p.bits - 1)
    drop = int(lower_by * p.denominator)
    Q = [-((-x - y) // 2) - drop for x, y in zip(*p.corners[0], strict=True)]
    return Point(0, {0: half, 1: half}, tuple(Q))


def test_a_mixture_of_the_corners_is_accepted(proved) -> None:
    model, certificate = proved
    assert check(with_points(certificate, [halfway(certificate)], {0: {}}), model).valid


def test_a_value_below_its_mixture_is_refused(proved) -> None:
    model, certificate = proved
    verdict = check(with_points(certificate, [halfway(certificate, Fraction(1, 1000))], {0: {}}), model)
    assert not verdict.valid and "too low" in str(verdict.fault)


def test_a_circle_of_mixtures_is_refused(proved) -> None:
    model, certificate = proved
    one, first = 1 << certificate.points.bits, 2 + len(certificate.points.points)
    low = halfway(certificate, Fraction(10_000))
    circle = with_points(certificate, [low, low], {0: {first + 1: one}, 1: {first: one}})
    verdict = check(circle, model)
    assert not verdict.valid and "not before it" in str(verdict.fault)


@pytest.mark.parametrize("lower_by", [Fraction(0), Fraction(10_000)])
def test_a_point_made_of_itself_is_refused(proved, lower_by: Fraction) -> None:
    model, certificate = proved
    one, first = 1 << certificate.points.bits, 2 + len(certificate.points.points)
    alone = with_points(certificate, [halfway(certificate, lower_by)], {0: {first: one}})
    assert not check(alone, model).valid


def test_weights_that_exceed_the_belief_are_refused(proved) -> None:
    model, certificate = proved
    more = with_points(
        certificate, [halfway(certificate)], {0: {0: 1 + (1 << (certificate.points.bits - 1))}}
    )
    verdict = check(more, model)
    assert not verdict.valid and "exceeds its belief" in str(verdict.fault)


def test_a_corner_inherits_nothing(proved) -> None:
    model, certificate = proved
    p = certificate.points
    weights = {**p.weights, (1, 0, INHERITED): {}}
    verdict = check(replace(certificate, points=replace(p, weights=weights)), model)
    assert not verdict.valid and "not before it" in str(verdict.fault)


def test_the_certificate_reproduces_a_search_that_inherited() -> None:
    """The proof of an interval is about as narrow as the search found it."""
    model = POMDP.build(
        states=3,
        actions=2,
        observations=2,
        T=[
            [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/10", "1/5", "7/10"]],
            [["1/3", "1/3", "1/3"], ["2/5", "1/5", "2/5"], ["1/6", "2/3", "1/6"]],
        ],
        Z=[
            [["3/5", "2/5"], ["1/2", "1/2"], ["1/5", "4/5"]],
            [["2/3", "1/3"], ["1/4", "3/4"], ["1/2", "1/2"]],
        ],
        R=[[6, -8, -6], [-5, -6, 6]],
        discount="3/4",
    )
    found = solve(model, Criterion.of(model), gap=1e-4)
    assert found.ended == "gap"
    assert found.interval.width <= 1.1e-4
