"""Policies: open loop, finite-state controller, alpha vectors, reactive; and their JSON files.

Imports only numpy, pomdp.model, pomdp.arrays and pomdp.strict_json. What a policy is worth: pomdp.value.

A policy knows actions and observations by index; a file knows them by name, so both ways take the model:

    {"kind": "open_loop", "prefix": ["listen", "listen"], "cycle": ["open-left"]}
    {"kind": "reactive", "first": "listen",
     "rules": {"tiger-left": "open-right", "tiger-right": {"listen": 0.5, "open-left": 0.5}}}
    {"kind": "controller", "start": 0,
     "nodes": [{"act": "listen", "next": {"listen": {"tiger-left": 1, "tiger-right": 0}}},
               {"act": "open-right", "next": {"open-right": 0}}]}
    {"kind": "alpha_vectors", "vectors": [{"action": "listen", "values": [18.7, 18.7]}]}

A distribution over actions is one name or an object of name to probability; `next` after an action is one
node for all observations or an object with one node for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pomdp.arrays import distributions, indices, integers, is_index, reals
from pomdp.model import POMDP, ModelError
from pomdp.strict_json import as_list, as_node, as_number, as_object, dumps, entries, loads, position


@dataclass(frozen=True)
class OpenLoop:
    """An action sequence chosen in advance: `prefix` once, then `cycle` for ever; both hold action indices.

    An empty cycle is a plan that ends, and serves only horizons <= len(prefix).
    """

    prefix: tuple[int, ...]
    cycle: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse what is no sequence of action indices, and the empty plan."""
        for name in ("prefix", "cycle"):
            object.__setattr__(self, name, indices(getattr(self, name), f"open loop {name}"))
        if not self.prefix and not self.cycle:
            raise ModelError(
                "an open loop needs at least one action, for example OpenLoop(prefix=(), cycle=(0,))"
            )

    def actions(self, steps: int) -> tuple[int, ...]:
        """The first `steps` actions; ModelError when the plan ends before."""
        self.require(steps)
        missing = max(0, steps - len(self.prefix))
        repeats = -(-missing // len(self.cycle)) if self.cycle else 0
        return (self.prefix + self.cycle * repeats)[:steps]

    def require(self, horizon: int | None) -> None:
        """ModelError unless the plan lasts for `horizon` steps (None: for ever)."""
        if self.cycle or (horizon is not None and horizon <= len(self.prefix)):
            return
        asked = "an infinite horizon" if horizon is None else f"horizon {horizon}"
        raise ModelError(
            f"the open loop has {len(self.prefix)} actions and an empty cycle, too short for {asked}; "
            f"give a cycle, for example cycle=({self.prefix[-1]},)"
        )

    def to_json(self, model: POMDP) -> str:
        """The policy as a JSON text with the model's names."""
        check_fits(self, model)
        plans = {name: [model.actions[a] for a in getattr(self, name)] for name in ("prefix", "cycle")}
        return dumps({"kind": "open_loop", **plans})


@dataclass(frozen=True, eq=False)
class Controller:
    """A finite-state controller: stochastic actions, deterministic memory.

    `act` `[K, A]`: probability of each action in each node, rows summing to 1 within 1e-9. `successor`
    `[K, A, O]`: the next node after action a and observation o; what follows an action of probability 0 is
    never used. `start`: the node before the first action. Raises ModelError naming the offending entry.
    """

    act: np.ndarray
    successor: np.ndarray
    start: int = 0

    def __post_init__(self) -> None:
        """Validate shapes, probabilities and nodes."""
        act = distributions(self.act, 2, "controller act[{}]")
        successor = integers(self.successor, 3, "controller successor")
        K = len(act)
        if successor.shape[:2] != act.shape:
            right = f"({K}, {act.shape[1]}, number of observations)"
            raise ModelError(
                f"controller successor has shape {successor.shape}; act {act.shape} asks for {right}"
            )
        wrong = np.argwhere((successor < 0) | (successor >= K))
        if len(wrong):
            place = tuple(wrong[0].tolist())
            found = successor[place]
            raise ModelError(f"controller successor{list(place)} is {found}, not a node from 0 to {K - 1}")
        if not is_index(self.start) or not 0 <= self.start < K:
            raise ModelError(f"controller start is {self.start!r}, not a node from 0 to {K - 1}")
        object.__setattr__(self, "act", act)
        object.__setattr__(self, "successor", successor)
        object.__setattr__(self, "start", int(self.start))

    @property
    def num_nodes(self) -> int:
        """K."""
        return len(self.act)

    def to_json(self, model: POMDP) -> str:
        """The policy as a JSON text with the model's names, without what follows actions of probability 0."""
        check_fits(self, model)
        nodes = []
        for k in range(self.num_nodes):
            following: dict[str, Any] = {}
            for a in np.flatnonzero(self.act[k]):
                row = self.successor[k, a].tolist()
                same = row.count(row[0]) == len(row)
                following[model.actions[a]] = (
                    row[0] if same else dict(zip(model.observations, row, strict=True))
                )
            nodes.append({"act": _named(self.act[k], model.actions), "next": following})
        return dumps({"kind": "controller", "start": self.start, "nodes": nodes})


@dataclass(frozen=True, eq=False)
class Reactive:
    """A memoryless policy `pi(a|o)` on the last observation, with a rule of its own for the first step.

    `pi` `[O, A]` and `first` `[A]`: action probabilities, each row summing to 1 within 1e-9; else ModelError.
    """

    pi: np.ndarray
    first: np.ndarray

    def __post_init__(self) -> None:
        """Validate shapes and probabilities."""
        pi = distributions(self.pi, 2, "reactive pi[{}]")
        first = distributions(self.first, 1, "reactive first")
        if len(first) != pi.shape[1]:
            raise ModelError(f"reactive first has {len(first)} actions, pi has {pi.shape[1]}")
        object.__setattr__(self, "pi", pi)
        object.__setattr__(self, "first", first)

    def to_json(self, model: POMDP) -> str:
        """The policy as a JSON text with the model's names."""
        check_fits(self, model)
        rows = zip(model.observations, self.pi, strict=True)
        rules = {name: _named(row, model.actions) for name, row in rows}
        return dumps({"kind": "reactive", "first": _named(self.first, model.actions), "rules": rules})


@dataclass(frozen=True, eq=False)
class AlphaVectors:
    """The greedy policy of alpha vectors: at belief b, the action of the vector with the largest `alpha . b`.

    `vectors` `[K, S]` finite reals; `actions` `[K]` action indices. The earliest vector wins a tie, and one
    set serves every step. Raises ModelError naming the offending entry.
    """

    vectors: np.ndarray
    actions: np.ndarray

    def __post_init__(self) -> None:
        """Validate shapes and indices."""
        vectors = reals(self.vectors, 2, "alpha vectors")
        actions = integers(self.actions, 1, "alpha vector actions")
        if len(actions) != len(vectors):
            raise ModelError(
                f"{len(vectors)} alpha vectors but {len(actions)} actions; give one action a vector"
            )
        if np.any(actions < 0):
            raise ModelError(f"alpha vector action {actions.min()} is negative; actions are counted from 0")
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "actions", actions)

    def value(self, belief: np.ndarray) -> np.ndarray:
        """`max_k alpha_k . b` `[...]` at beliefs `[..., S]`: what the vectors claim, not the policy's J."""
        return np.max(np.asarray(belief) @ self.vectors.T, axis=-1)

    def choose(self, belief: np.ndarray) -> np.ndarray:
        """The greedy action `[...]` at beliefs `[..., S]`."""
        return self.actions[np.argmax(np.asarray(belief) @ self.vectors.T, axis=-1)]

    def to_json(self, model: POMDP) -> str:
        """The policy as a JSON text; values are in the order of the model's states."""
        check_fits(self, model)
        pairs = zip(self.actions, self.vectors, strict=True)
        rows = [{"action": model.actions[a], "values": vector.tolist()} for a, vector in pairs]
        return dumps({"kind": "alpha_vectors", "vectors": rows})


Policy = OpenLoop | Controller | Reactive | AlphaVectors


def check_fits(policy: Policy, model: POMDP) -> None:
    """ModelError naming the first mismatch between the sizes of `policy` and of `model`."""
    sizes: list[tuple[str, int, int]] = []
    used: tuple[int, ...] = ()
    if isinstance(policy, OpenLoop):
        used = policy.prefix + policy.cycle
    elif isinstance(policy, AlphaVectors):
        used = tuple(policy.actions.tolist())
        sizes.append(("states", policy.vectors.shape[1], model.num_states))
    elif isinstance(policy, Controller):
        sizes.append(("actions", policy.act.shape[1], model.num_actions))
        sizes.append(("observations", policy.successor.shape[2], model.num_observations))
    elif isinstance(policy, Reactive):
        sizes.append(("actions", policy.pi.shape[1], model.num_actions))
        sizes.append(("observations", policy.pi.shape[0], model.num_observations))
    else:
        raise ModelError(
            f"{type(policy).__name__} is not one of OpenLoop, Controller, Reactive, AlphaVectors"
        )
    for what, ours, theirs in sizes:
        if ours != theirs:
            raise ModelError(f"the policy is for {ours} {what}, the model has {theirs}")
    if used and max(used) >= model.num_actions:
        raise ModelError(
            f"the policy uses action {max(used)}; the model has actions 0 to {model.num_actions - 1}"
        )


def as_controller(policy: Policy, model: POMDP, horizon: int | None = None) -> Controller:
    """The finite-state controller that acts as `policy` does for `horizon` steps (None: without end).

    An open loop with an empty cycle needs a horizon <= len(prefix). A reactive policy becomes one node for
    each observation and a last one for the first step. Raises ModelError for alpha vectors, whose memory
    is the belief.
    """
    check_fits(policy, model)
    if isinstance(policy, Controller):
        return policy
    shape = (model.num_actions, model.num_observations)
    if isinstance(policy, OpenLoop):
        policy.require(horizon)
        plan = policy.prefix + policy.cycle
        following = np.arange(1, len(plan) + 1)
        # A plan that ends has used up its horizon at its last action, so any node may follow it.
        following[-1] = len(policy.prefix) if policy.cycle else len(plan) - 1
        act = np.eye(model.num_actions)[list(plan)]
        return Controller(act, np.broadcast_to(following[:, None, None], (len(plan), *shape)), 0)
    if isinstance(policy, Reactive):
        nodes = model.num_observations + 1
        successor = np.broadcast_to(np.arange(model.num_observations), (nodes, *shape))
        return Controller(np.vstack([policy.pi, policy.first]), successor, model.num_observations)
    raise ModelError(
        "alpha vectors remember a belief, which is no finite memory; use evaluate where few beliefs are "
        "reached and Monte Carlo otherwise"
    )


def policy_from_json(text: str, model: POMDP) -> Policy:
    """The policy written in `text` with the names of `model`; ModelError naming the entry that is wrong."""
    data = loads(text, "the policy")
    readers: dict[str, Callable[[dict[str, Any], POMDP], Policy]] = {
        "open_loop": _read_open_loop,
        "controller": _read_controller,
        "reactive": _read_reactive,
        "alpha_vectors": _read_alpha_vectors,
    }
    kind = as_object(data, "the policy").get("kind")
    if not isinstance(kind, str) or kind not in readers:
        raise ModelError(f'the policy needs a "kind", one of {", ".join(readers)}; found {str(kind)[:40]!r}')
    return readers[kind](data, model)


def _read_open_loop(data: dict[str, Any], model: POMDP) -> OpenLoop:
    entries(data, {"kind", "prefix", "cycle"}, "the open loop")
    plans = {}
    for key in ("prefix", "cycle"):
        names = enumerate(as_list(data[key], key))
        plans[key] = tuple(position(name, model.actions, "action", f"{key}[{i}]") for i, name in names)
    return OpenLoop(plans["prefix"], plans["cycle"])


def _read_controller(data: dict[str, Any], model: POMDP) -> Controller:
    entries(data, {"kind", "start", "nodes"}, "the controller")
    nodes = as_list(data["nodes"], "nodes")
    if not nodes:
        raise ModelError("nodes is empty; a controller has at least one")
    act = np.zeros((len(nodes), model.num_actions))
    # A node follows itself after actions it never takes.
    successor = np.tile(np.arange(len(nodes))[:, None, None], (1, model.num_actions, model.num_observations))
    for k, node in enumerate(nodes):
        place = f"nodes[{k}]"
        entries(node, {"act", "next"}, place)
        act[k] = _read_distribution(node["act"], model, f"{place}.act")
        following = as_object(node["next"], f"{place}.next")
        for name, target in following.items():
            a = position(name, model.actions, "action", f"{place}.next")
            successor[k, a] = _read_successors(target, model, len(nodes), f"{place}.next.{name}")
        for name in (model.actions[a] for a in np.flatnonzero(act[k])):
            if name not in following:
                raise ModelError(
                    f'{place}.next lacks "{name}", which the node may do; for example "{name}": {k}'
                )
    return Controller(act, successor, as_node(data["start"], len(nodes), "start"))


def _read_successors(target: Any, model: POMDP, nodes: int, place: str) -> np.ndarray:
    """`[O]` next nodes from one node for all observations or an object with one for each."""
    if not isinstance(target, dict):
        return np.full(model.num_observations, as_node(target, nodes, place))
    entries(target, set(model.observations), place)
    return np.array([as_node(target[name], nodes, f"{place}.{name}") for name in model.observations])


def _read_reactive(data: dict[str, Any], model: POMDP) -> Reactive:
    entries(data, {"kind", "first", "rules"}, "the reactive policy")
    rules = entries(data["rules"], set(model.observations), "rules")
    pi = [_read_distribution(rules[name], model, f"rules.{name}") for name in model.observations]
    return Reactive(np.array(pi), _read_distribution(data["first"], model, "first"))


def _read_alpha_vectors(data: dict[str, Any], model: POMDP) -> AlphaVectors:
    entries(data, {"kind", "vectors"}, "the alpha vectors")
    actions, vectors = [], []
    for k, row in enumerate(as_list(data["vectors"], "vectors")):
        place = f"vectors[{k}]"
        entries(row, {"action", "values"}, place)
        values = as_list(row["values"], f"{place}.values")
        if len(values) != model.num_states:
            raise ModelError(
                f"{place}.values has {len(values)} numbers, the model has {model.num_states} states"
            )
        actions.append(position(row["action"], model.actions, "action", f"{place}.action"))
        vectors.append([as_number(v, f"{place}.values[{s}]") for s, v in enumerate(values)])
    return AlphaVectors(np.array(vectors, dtype=float), np.array(actions, dtype=np.int64))


def _read_distribution(value: Any, model: POMDP, place: str) -> np.ndarray:
    """`[A]` probabilities from an action's name or an object of name to probability."""
    row = np.zeros(model.num_actions)
    if isinstance(value, str):
        row[position(value, model.actions, "action", place)] = 1.0
        return row
    for name, probability in as_object(value, place).items():
        row[position(name, model.actions, "action", place)] = as_number(probability, f"{place}.{name}")
    return distributions(row, 1, place)


def _named(row: np.ndarray, names: Sequence[str]) -> str | dict[str, float]:
    """A distribution as a file shows it: the name where it is certain, else the positive probabilities."""
    used = np.flatnonzero(row).tolist()
    if len(used) == 1 and row[used[0]] == 1.0:
        return names[used[0]]
    return {names[a]: float(row[a]) for a in used}
