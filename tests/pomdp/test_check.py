"""The exact check: proofs of the solver pass, and every edit that claims more fails an inequality."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp.bounds import solve, solve_open_loop
from pomdp.cassandra import read as read_model
from pomdp.certificate import (
    END,
    OPEN_LOOP,
    OPTIMAL,
    Certificate,
    CertificateError,
    Controller,
    Node,
    Points,
    read,
    write,
)
from pomdp.check import check
from pomdp.criterion import Criterion
from pomdp.model import POMDP

STEP = Fraction(1, 1000)
GAP = 1e-6
FOREVER, STAGED = Criterion(Fraction(19, 20)), Criterion(Fraction(1), 3)
KINDS = [f"{quantity} {span}" for quantity in (OPTIMAL, OPEN_LOOP) for span in ("forever", "staged")]


@pytest.fixture(scope="module")
def made(tiger) -> dict[str, tuple[POMDP, Certificate]]:
    """Model and certificate for both quantities, discounted and staged, and for a start in a corner."""
    model = tiger()
    corner = model.with_start({0: 1})
    found = {}
    for span, criterion in (("forever", FOREVER), ("staged", STAGED)):
        found[f"{OPTIMAL} {span}"] = model, solve(model, criterion, gap=GAP).certificate
        found[f"{OPEN_LOOP} {span}"] = model, solve_open_loop(model, criterion, gap=GAP).certificate
    found["corner"] = corner, solve(corner, FOREVER, gap=GAP).certificate
    return found


ALL_KINDS = pytest.mark.parametrize("kind", [*KINDS, "corner"])


def refused(certificate: Certificate, model: POMDP, *words: str) -> None:
    """Fail unless the checker refuses, with the words in its fault."""
    verdict = check(certificate, model)
    assert not verdict.valid, "a false certificate was accepted"
    for word in words:
        assert word in str(verdict.fault)


def with_node(certificate: Certificate, k: int, **changes) -> Certificate:
    """The certificate with one controller node changed."""
    nodes = list(certificate.controller.nodes)
    nodes[k] = replace(nodes[k], **changes)
    return replace(certificate, controller=replace(certificate.controller, nodes=tuple(nodes)))


def with_points(certificate: Certificate, **changes) -> Certificate:
    """The certificate with its point set changed."""
    return replace(certificate, points=replace(certificate.points, **changes))


def with_point(certificate: Certificate, i: int, **changes) -> Certificate:
    """The certificate with one belief point changed."""
    points = list(certificate.points.points)
    points[i] = replace(points[i], **changes)
    return with_points(certificate, points=tuple(points))


def lowered(certificate: Certificate, node: int, states: int) -> Certificate:
    """All Q of a node within STEP of its greatest, which is v of that node, lowered by STEP."""
    p = certificate.points
    amount = int(STEP * p.denominator)

    def lower(Q: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(q - amount if q >= max(Q) - amount else q for q in Q)

    corners = p.denominator and len(p.corners) * states
    if node >= corners:
        return with_point(certificate, node - corners, Q=lower(p.points[node - corners].Q))
    stages = [list(stage) for stage in p.corners]
    stages[node // states][node % states] = lower(stages[node // states][node % states])
    return with_points(certificate, corners=tuple(tuple(stage) for stage in stages))


def weighted_at_start(certificate: Certificate, model: POMDP) -> list[int]:
    """Nodes with weight at the start belief; corners too, where the points leave something of it."""
    p, S = certificate.points, model.num_states
    corners = len(p.corners) * S
    left = dict(model.exact.start)
    for j, w in p.start.items():
        belief = {j: 1 << p.bits} if j < S else p.points[j - corners].belief
        for s, n in belief.items():
            left[s] -= Fraction(w * n, 1 << 2 * p.bits)
    return sorted(j for j, w in p.start.items() if w) + [s for s, p in left.items() if p > 0]


# ---- what holds is accepted


@ALL_KINDS
def test_what_the_solver_proves_is_accepted(made, kind):
    model, certificate = made[kind]
    verdict = check(certificate, model)
    assert verdict.valid and verdict.fault is None
    assert (verdict.lower, verdict.upper) == (certificate.lower, certificate.upper)
    assert 0 <= verdict.upper - verdict.lower <= 2 * GAP


def test_a_weaker_claim_is_accepted(made):
    model, certificate = made["optimal forever"]
    weaker = replace(certificate, lower=certificate.lower - 1, upper=certificate.upper + 1)
    assert check(weaker, model).valid


def test_a_pair_of_blind_bounds_written_by_hand():
    """One state, reward 1 a step, discount 1/2: the value is 2, at both ends."""
    model = POMDP.build(states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[[1]], discount="0.5")
    proof = Controller(0, 1, (Node(0, 0, (0,), (2,)),))
    points = Points(1, 1, (((2,),),), (), {}, {})
    certificate = Certificate(OPTIMAL, None, None, Fraction(2), Fraction(2), proof, points)
    assert check(certificate, model).valid
    refused(replace(certificate, lower=Fraction(21, 10)), model, "lower end", "claim")
    refused(replace(certificate, upper=Fraction(19, 10)), model, "upper end", "claim")
    refused(with_points(certificate, corners=(((1,),),)), model, "upper end", "corner 0")
    refused(with_node(certificate, 0, alpha=(3,)), model, "lower end", "node 0")


# ---- claims and values


@ALL_KINDS
def test_a_raised_lower_claim_is_refused(made, kind):
    model, certificate = made[kind]
    refused(replace(certificate, lower=certificate.lower + STEP), model, "lower end: the claim", "0.001")


@ALL_KINDS
def test_a_lowered_upper_claim_is_refused(made, kind):
    model, certificate = made[kind]
    refused(replace(certificate, upper=certificate.upper - STEP), model, "upper end: the claim", "0.001")


@ALL_KINDS
def test_a_raised_entry_of_the_start_nodes_alpha_is_refused(made, kind):
    model, certificate = made[kind]
    start = certificate.controller.start
    alpha = certificate.controller.nodes[start].alpha
    for s in model.exact.start:
        amount = int(STEP * certificate.controller.denominator)
        raised = tuple(x + amount * (q == s) for q, x in enumerate(alpha))
        refused(
            with_node(certificate, start, alpha=raised), model, f"node {start}", model.states[s], "too high"
        )


@ALL_KINDS
def test_a_lowered_value_with_weight_at_the_start_is_refused(made, kind):
    model, certificate = made[kind]
    nodes = weighted_at_start(certificate, model)
    assert nodes
    for node in nodes:
        refused(lowered(certificate, node, model.num_states), model, "upper end: Q of", "too low")


def test_a_lowered_value_is_refused_where_points_share_the_start(made):
    """The start belief split over the two corners instead of being a point: a looser claim, checked alike."""
    model, certificate = made["optimal forever"]
    split = with_points(certificate, start={})
    refused(split, model, "upper end: the claim")
    split = replace(split, upper=Fraction(1000))
    assert check(split, model).valid and weighted_at_start(split, model) == [0, 1]
    for node in (0, 1):
        refused(lowered(split, node, 2), model, "the corner", model.states[node], "too low")


# ---- weights, beliefs and stages


@ALL_KINDS
def test_an_increased_weight_is_refused(made, kind):
    model, certificate = made[kind]
    one = 1 << certificate.points.bits
    if certificate.points.start:
        more = {j: w + 1 for j, w in certificate.points.start.items()}
        refused(with_points(certificate, start=more), model, "start", "exceed")
    for key, row in list(certificate.points.weights.items())[:5]:
        more = {j: w + one for j, w in row.items()}
        refused(with_points(certificate, weights=certificate.points.weights | {key: more}), model, "exceed")


@ALL_KINDS
def test_a_negative_weight_is_refused(made, kind):
    model, certificate = made[kind]
    points = certificate.points
    j = next(iter(points.start), 0)
    refused(with_points(certificate, start={j: -1}), model, "weight of the start", "negative")
    for key, row in list(points.weights.items())[:5]:
        refused(
            with_points(certificate, weights=points.weights | {key: {j: -w for j, w in row.items()}}),
            model,
            "negative",
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_that_is_no_distribution_is_refused(made, kind):
    model, certificate = made[kind]
    one = 1 << certificate.points.bits
    for belief in ({0: one, 1: 1}, {0: one - 1}, {0: one + 1, 1: -1}, {7: one}, {-1: one}, {}):
        refused(with_point(certificate, 0, belief=belief), model, "point 0", "distribution")


def test_a_wrong_stage_is_refused(made):
    model, certificate = made["optimal staged"]
    for stage in (-1, 3):
        refused(with_point(certificate, 0, stage=stage), model, "point 0", "stage")
        refused(with_node(certificate, 0, stage=stage), model, "stage")
    refused(with_node(certificate, 0, stage=1), model, "start node")
    later = next(k for k, n in enumerate(certificate.controller.nodes) if n.stage == 1)
    refused(with_node(certificate, later, stage=2), model, "not a node of the next stage")
    refused(with_node(certificate, 0, following=(0, 0)), model, "node 0 leads to 0")
    last = next(k for k, n in enumerate(certificate.controller.nodes) if n.stage == 2)
    refused(with_node(certificate, last, following=(last, last)), model, f"node {last} leads to {last}")
    S, one = model.num_states, 1 << certificate.points.bits
    for j in (S, 10**30, -1):  # a corner of the second stage, and no node at all
        refused(with_points(certificate, start={j: one // 4}), model, "another stage")


@pytest.mark.parametrize("kind", ["optimal forever", "optimal staged"])
def test_a_proof_of_the_wrong_shape_is_refused(made, kind):
    model, certificate = made[kind]
    node = certificate.controller.nodes[0]
    refused(with_node(certificate, 0, alpha=node.alpha[1:]), model, "node 0")
    refused(with_node(certificate, 0, following=node.following[1:]), model, "node 0")
    refused(with_node(certificate, 0, action=3), model, "node 0")
    refused(with_node(certificate, 0, action=-1), model, "node 0")
    refused(with_points(certificate, corners=certificate.points.corners[1:]), model, "corners")
    refused(with_points(certificate, bits=0), model, "bits")
    refused(with_points(certificate, bits=10**9), model, "bits")
    refused(
        replace(certificate, controller=replace(certificate.controller, start=10**6)), model, "start node"
    )
    refused(replace(certificate, controller=replace(certificate.controller, nodes=())), model, "start node")
    if kind == "optimal forever":
        refused(with_node(certificate, 0, following=(END, END)), model, f"leads to {END}")


def test_numbers_beyond_floats_are_refused_in_words(made):
    model, certificate = made["optimal forever"]
    huge = 10**400
    refused(with_node(certificate, 0, alpha=(huge, huge)), model, "node 0", "too high")
    refused(replace(certificate, lower=Fraction(huge)), model, "lower end: the claim")
    refused(replace(certificate, upper=Fraction(-huge)), model, "upper end: the claim")
    refused(with_point(certificate, 0, Q=(-huge,) * 3), model, "upper end: Q of", "too low")
    assert check(replace(certificate, lower=Fraction(-huge), upper=Fraction(huge)), model).valid


# ---- other models and criteria


@pytest.mark.parametrize("kind", KINDS)
def test_another_model_is_refused(made, tiger, kind):
    _, certificate = made[kind]
    gentler = POMDP.build(
        states=2,
        actions=3,
        observations=2,
        T=tiger().exact.T,
        Z=tiger().exact.Z,
        R=[["-1.001", "-1.001"], [-100, 10], [10, -100]],
        discount="0.95",
    )
    refused(certificate, gentler)
    if kind.startswith(OPTIMAL):  # an action sequence does not hear how well one listens
        refused(certificate, tiger("0.8"), "lower end")
        refused(certificate, tiger("0.9"))
    refused(
        certificate,
        POMDP.build(states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[[0]], discount=0.5),
    )


def test_the_published_tigers_do_not_accept_each_others_certificates(benchmarks):
    one, other = (read_model(benchmarks / name) for name in ("tiger.95.pomdp", "tiger.aaai.POMDP"))
    certificate = solve(one, Criterion.of(one), gap=1e-3).certificate
    assert check(certificate, one).valid
    refused(certificate, other)
    assert check(
        certificate, other.with_discount("0.95")
    ).valid  # then it is the same model, by another author


@pytest.mark.parametrize("quantity", [OPTIMAL, OPEN_LOOP])
def test_another_discount_is_refused(made, quantity):
    model, certificate = made[f"{quantity} forever"]
    assert certificate.discount is None  # the model's own
    for discount in ("0.9", "0.94", "0.949", "0.951", "0.96"):
        refused(certificate, model.with_discount(discount))
        refused(replace(certificate, discount=Fraction(discount)), model)
    staged = made[f"{quantity} staged"][1]
    assert staged.discount == 1
    for discount in (None, Fraction(9, 10), Fraction(999, 1000), Fraction(0)):
        refused(replace(staged, discount=discount), model)


@pytest.mark.parametrize("discount", [Fraction(1), Fraction(2), Fraction(-1, 2)])
def test_without_stages_only_discounting_proves_anything(made, discount):
    model, certificate = made["optimal forever"]
    refused(replace(certificate, discount=discount), model, "discount", "proves nothing")
    nothing = model.with_discount(None)
    refused(certificate, nothing, "neither")
    # At discount 1 every constant reproduces itself where nothing is paid, so -5 would pass for an upper end.
    idle = POMDP.build(states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[[0]])
    proof = Controller(0, 1, (Node(0, 0, (0,), (-5,)),))
    false = Certificate(
        OPTIMAL, discount, None, Fraction(-5), Fraction(-5), proof, Points(1, 1, (((-5,),),), (), {}, {})
    )
    refused(false, idle)
    refused(replace(false, discount=Fraction(1, 2)), idle, "upper end")


@pytest.mark.parametrize("kind", KINDS)
def test_another_horizon_is_refused(made, kind):
    model, certificate = made[kind]
    for horizon in {None, -1, 0, 1, 2, 3, 4, 10**9} - {certificate.horizon}:
        refused(replace(certificate, horizon=horizon), model)


def test_the_other_quantity_is_refused(made):
    for kind in KINDS:
        model, certificate = made[kind]
        other = OPEN_LOOP if certificate.quantity == OPTIMAL else OPTIMAL
        refused(replace(certificate, quantity=other), model)


# ---- files changed at random

HUGE = 10**2000
LEAVES = st.one_of(
    st.integers(-3, 6),
    st.sampled_from(
        [HUGE, -HUGE, 2**80, -(2**63), True, None, 0.5, "", "1/3", "-5", "1e400", "-1e400", "--5/3", "7/0"]
    ),
    st.just([]),
    st.just({}),
)
SHIFTS = st.one_of(
    st.integers(-2, 2), st.integers(0, 200).map(lambda k: 2**k), st.integers(0, 200).map(lambda k: -(2**k))
)


def places(data, path=()):
    """Every place in a JSON value."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def mutate(draw, data) -> None:
    """Change one place of a JSON object: a number moved, a part replaced, removed or doubled."""
    path = draw(st.sampled_from([p for p in places(data) if p]))
    parent = data
    for key in path[:-1]:
        parent = parent[key]
    key, old = path[-1], parent[path[-1]]
    kind = draw(st.sampled_from(["move", "move", "replace", "remove", "double"]))
    if kind == "move" and isinstance(old, int):
        parent[key] = old + draw(SHIFTS)
    elif kind == "remove":
        del parent[key]
    elif kind == "double" and isinstance(parent, list):
        parent.insert(key, old)
    else:
        parent[key] = draw(LEAVES)


@settings(max_examples=150)
@given(data=st.data())
def test_a_changed_file_is_refused_cleanly_or_still_true(made, expectimax, tmp_path_factory, data):
    model, certificate = made[data.draw(st.sampled_from(["optimal staged", "open_loop staged"]))]
    path = tmp_path_factory.mktemp("changed") / "certificate.json"
    write(certificate, path)
    content = json.loads(path.read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data.draw, content)
    path.write_text(json.dumps(content))
    try:
        changed = read(path)
    except CertificateError as error:
        assert "\n" not in str(error) and len(str(error)) < 400 + len(str(path))
        return
    verdict = check(changed, model)
    assert verdict.valid == (verdict.fault is None)
    if verdict.valid:
        asked = model.blinded() if changed.quantity == OPEN_LOOP else model
        discount = model.exact.discount if changed.discount is None else changed.discount
        assert changed.horizon == 3  # no proof of a few layers serves another horizon
        assert changed.lower <= expectimax(asked, discount, 3) <= changed.upper
