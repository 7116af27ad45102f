"""What a pair of bounds rests on, as data and as a JSON file; imports model, rational, strict_json, whole_file.

A certificate claims `lower <= value <= upper` for one model, criterion and quantity (V* or W) and carries the two
proofs: a finite-state controller with one alpha vector a node, and belief points with upper values and convex weights.
Everything is an integer over a stated denominator. It carries no checksum and names no model: `pomdp.check` accepts
it where the inequalities hold, and nowhere else. Source: design of the formal core, section 5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pomdp.model import ModelError
from pomdp.rational import read_rational
from pomdp.strict_json import as_list, dumps, entries, loads
from pomdp.whole_file import write_whole

FORMAT = "hpomdp certificate 1"
OPTIMAL, OPEN_LOOP = "optimal", "open_loop"
LARGEST = 10**308  # claims and discounts beyond it are no floats, and nothing could print them
_RATIO = re.compile(r"-?[0-9]{1,4000}/[1-9][0-9]{0,3999}")  # integers that Python reads
END = -1  # the link past the last stage of a horizon
INHERITED = -1  # in the place of an observation: the pair's value is a mixture of other points' values


class CertificateError(ModelError):
    """A certificate file that cannot be read, or does not have the shape it must have."""


@dataclass(frozen=True)
class Node:
    """A controller node: stage, action, the next node an observation (END past a horizon), alpha `[S]` integers."""

    stage: int
    action: int
    following: tuple[int, ...]
    alpha: tuple[int, ...]


@dataclass(frozen=True)
class Controller:
    """Proof of the lower end: alpha(s) = integer / `denominator`; the run starts in node `start`."""

    start: int
    denominator: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Point:
    """A belief and its upper values: {state: integer} summing to the belief denominator, Q `[A]` integers."""

    stage: int
    belief: dict[int, int]
    Q: tuple[int, ...]


# (owner, action, observation) -> {point: weight}; the owner and the points are numbered by `Points`.
Weights = dict[tuple[int, int, int], dict[int, int]]


@dataclass(frozen=True)
class Points:
    """Proof of the upper end.

    Node t*S + s is the corner of state s at stage t, with Q = corners[t][s][a]; nodes stages*S + i are `points[i]`.
    Q = integer / `denominator`, beliefs and weights = integer / 2**`bits`. A successor's weights over points are
    unnormalised (they sum to at most its probability); what they leave of it falls to the corners, and must not be
    negative. `start` gives the weights of the start belief. A row for the observation INHERITED splits the owner's own
    belief instead, among corners and points with smaller numbers; then Q(owner, action) need only be at least their
    mixture for the same action, and no successors are looked at.
    """

    bits: int
    denominator: int
    corners: tuple[tuple[tuple[int, ...], ...], ...]
    points: tuple[Point, ...]
    weights: Weights
    start: dict[int, int]


@dataclass(frozen=True)
class Certificate:
    """Claims and proofs. `discount` None means the model's own; `stages` is 1 when discounted, else the horizon."""

    quantity: str
    discount: Fraction | None
    horizon: int | None
    lower: Fraction
    upper: Fraction
    controller: Controller
    points: Points

    @property
    def stages(self) -> int:
        """How many value functions each end has."""
        return 1 if self.horizon is None else self.horizon

    def actions(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Prefix and cycle of an open-loop proof, which meets one observation; the cycle is empty for a horizon."""
        order: list[int] = []
        position: dict[int, int] = {}
        k = self.controller.start
        while k != END and k not in position:
            position[k] = len(order)
            order.append(self.controller.nodes[k].action)
            k = self.controller.nodes[k].following[0]
        split = len(order) if k == END else position[k]
        return tuple(order[:split]), tuple(order[split:])


def write(certificate: Certificate, path: Path) -> None:
    """Write the file in one step: a reader sees the whole of it or none."""
    c, proof, points = certificate, certificate.controller, certificate.points
    data = {
        "format": FORMAT,
        "quantity": c.quantity,
        "discount": None if c.discount is None else str(c.discount),
        "horizon": c.horizon,
        "lower": {
            "claim": str(c.lower),
            "start": proof.start,
            "denominator": proof.denominator,
            "nodes": [[n.stage, n.action, list(n.following), list(n.alpha)] for n in proof.nodes],
        },
        "upper": {
            "claim": str(c.upper),
            "bits": points.bits,
            "denominator": points.denominator,
            "corners": [[list(q) for q in stage] for stage in points.corners],
            "points": [[p.stage, _pairs(p.belief), list(p.Q)] for p in points.points],
            "weights": [[*key, _pairs(row)] for key, row in sorted(points.weights.items())],
            "start": _pairs(points.start),
        },
    }
    write_whole(path, dumps(data))


def read(path: Path) -> Certificate:
    """Read a file; CertificateError naming the entry that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CertificateError(f"{path} is not a certificate: it is not UTF-8 text") from None
    try:
        return _certificate(loads(text, "certificate"))
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from None
    except ModelError as error:
        raise CertificateError(f"{path}: {error}") from None


def _certificate(data: Any) -> Certificate:
    top = entries(data, {"format", "quantity", "discount", "horizon", "lower", "upper"}, "certificate")
    if top["format"] != FORMAT:
        raise CertificateError(f"format is {str(top['format'])[:40]!r}, not {FORMAT!r}")
    if top["quantity"] not in (OPTIMAL, OPEN_LOOP):
        raise CertificateError(f"quantity is {str(top['quantity'])[:40]!r}, not {OPTIMAL!r} or {OPEN_LOOP!r}")
    lower = entries(top["lower"], {"claim", "start", "denominator", "nodes"}, "lower")
    upper_names = {"claim", "bits", "denominator", "corners", "points", "weights", "start"}
    upper = entries(top["upper"], upper_names, "upper")
    nodes = []
    for k, item in enumerate(as_list(lower["nodes"], "lower.nodes")):
        place = f"lower.nodes[{k}]"
        stage, action, following, alpha = _parts(item, 4, place)
        nodes.append(
            Node(
                _integer(stage, place),
                _integer(action, place),
                _integers(following, place),
                _integers(alpha, place),
            )
        )
    points = []
    for k, item in enumerate(as_list(upper["points"], "upper.points")):
        place = f"upper.points[{k}]"
        stage, belief, Q = _parts(item, 3, place)
        points.append(Point(_integer(stage, place), _mapping(belief, place), _integers(Q, place)))
    weights: Weights = {}
    for k, item in enumerate(as_list(upper["weights"], "upper.weights")):
        place = f"upper.weights[{k}]"
        owner, action, observation, row = _parts(item, 4, place)
        key = (_integer(owner, place), _integer(action, place), _integer(observation, place))
        if key in weights:
            raise CertificateError(f"{place} repeats owner, action, observation {key}")
        weights[key] = _mapping(row, place)
    corners = tuple(
        tuple(_integers(row, f"upper.corners[{t}]") for row in as_list(stage, f"upper.corners[{t}]"))
        for t, stage in enumerate(as_list(upper["corners"], "upper.corners"))
    )
    return Certificate(
        quantity=top["quantity"],
        discount=None if top["discount"] is None else _rational(top["discount"], "discount"),
        horizon=None if top["horizon"] is None else _integer(top["horizon"], "horizon"),
        lower=_rational(lower["claim"], "lower.claim"),
        upper=_rational(upper["claim"], "upper.claim"),
        controller=Controller(
            _integer(lower["start"], "lower.start"),
            _positive(lower["denominator"], "lower.denominator"),
            tuple(nodes),
        ),
        points=Points(
            bits=_integer(upper["bits"], "upper.bits"),
            denominator=_positive(upper["denominator"], "upper.denominator"),
            corners=corners,
            points=tuple(points),
            weights=weights,
            start=_mapping(upper["start"], "upper.start"),
        ),
    )


def _pairs(row: dict[int, int]) -> list[list[int]]:
    return [[key, value] for key, value in sorted(row.items())]


def _parts(item: Any, count: int, place: str) -> list[Any]:
    parts = as_list(item, place)
    if len(parts) != count:
        raise CertificateError(f"{place} has {len(parts)} parts, not {count}")
    return parts


def _integer(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise CertificateError(f"{place}: {str(value)[:40]!r} is not an integer")
    return value


def _positive(value: Any, place: str) -> int:
    if _integer(value, place) <= 0:
        raise CertificateError(f"{place} is {value}, not a positive integer")
    return int(value)


def _integers(values: Any, place: str) -> tuple[int, ...]:
    return tuple(_integer(v, place) for v in as_list(values, place))


def _mapping(values: Any, place: str) -> dict[int, int]:
    pairs = [_integers(v, place) for v in as_list(values, place)]
    if any(len(pair) != 2 for pair in pairs) or len({pair[0] for pair in pairs}) != len(pairs):
        raise CertificateError(f"{place} must list pairs of integers, each first one once")
    return {pair[0]: pair[1] for pair in pairs}


def _rational(value: Any, place: str) -> Fraction:
    number = None
    if isinstance(value, str) and _RATIO.fullmatch(value):
        top, _, bottom = value.partition("/")
        number = Fraction(int(top), int(bottom))
    elif isinstance(value, (str, int)) and not isinstance(value, bool):
        try:
            number = read_rational(value)
        except ValueError:
            pass
    if number is None:
        raise CertificateError(f"{place}: {str(value)[:40]!r} is not a rational such as '155/8'")
    if abs(number) > LARGEST:
        raise CertificateError(f"{place} is outside -1e308 to 1e308")
    return number
