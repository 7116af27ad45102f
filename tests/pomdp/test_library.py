"""Library tasks: closed forms against an exact search over rational beliefs, and the reading of names."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pomdp.cassandra import read
from pomdp.criterion import Criterion
from pomdp.library import FAMILIES, task, tasks
from pomdp.model import POMDP, ModelError

Belief = tuple[tuple[int, Fraction], ...]
SMALL = ["tiger", "tmaze:3:0.9", "flip:2", "repo_repair", "ticket_routing", "drift"]


class Search:
    """Exhaustive search over exact beliefs, sharing nothing with the package but the model's numbers."""

    def __init__(self, model: POMDP) -> None:
        exact = model.exact
        states, actions = range(model.num_states), range(model.num_actions)
        self.T = [[exact.T[a].row(s) for s in states] for a in actions]
        self.Z = [[exact.Z[a].row(s) for s in states] for a in actions]
        self.R = [exact.R.row(a) for a in actions]
        self.start: Belief = tuple(sorted(exact.start.items()))
        self.actions = actions
        self.known: dict[tuple[Belief, int, Fraction], Fraction] = {}
        self.after: dict[tuple[Belief, int], list[tuple[int, Fraction, Belief]]] = {}

    def reward(self, belief: Belief, a: int) -> Fraction:
        return sum((p * self.R[a].get(s, Fraction(0)) for s, p in belief), Fraction(0))

    def push(self, belief: Belief, a: int) -> dict[int, Fraction]:
        reached: dict[int, Fraction] = {}
        for s, p in belief:
            for t, q in self.T[a][s].items():
                reached[t] = reached.get(t, Fraction(0)) + p * q
        return reached

    def branches(self, belief: Belief, a: int) -> list[tuple[int, Fraction, Belief]]:
        """(observation, its probability, belief after it) for every observation that can be seen."""
        if (belief, a) not in self.after:
            measures: dict[int, dict[int, Fraction]] = {}
            for t, p in self.push(belief, a).items():
                for o, q in self.Z[a][t].items():
                    if p * q:
                        measures.setdefault(o, {})[t] = p * q
            self.after[belief, a] = [
                (
                    o,
                    (mass := sum(m.values(), Fraction(0))),
                    tuple(sorted((t, p / mass) for t, p in m.items())),
                )
                for o, m in sorted(measures.items())
            ]
        return self.after[belief, a]

    def optimal(self, discount: Fraction, steps: int, belief: Belief | None = None) -> Fraction:
        """V*: the best of all history-dependent policies over `steps` steps."""
        belief = self.start if belief is None else belief
        if steps == 0:
            return Fraction(0)
        key = (belief, steps, discount)
        if key not in self.known:
            rest = [
                sum(
                    (p * self.optimal(discount, steps - 1, b) for _, p, b in self.branches(belief, a)),
                    Fraction(0),
                )
                for a in self.actions
            ]
            self.known[key] = max(self.reward(belief, a) + discount * rest[a] for a in self.actions)
        return self.known[key]

    def open_loop(self, discount: Fraction, steps: int, measure: Belief | None = None) -> Fraction:
        """W: the best of all A**steps action sequences, each walked to its end."""
        measure = self.start if measure is None else measure
        if steps == 0:
            return Fraction(0)
        after = [tuple(self.push(measure, a).items()) for a in self.actions]
        return max(
            self.reward(measure, a) + discount * self.open_loop(discount, steps - 1, after[a])
            for a in self.actions
        )

    def beliefs(self, steps: int) -> set[Belief]:
        """Distinct beliefs that a history of length 0..steps can lead to."""
        seen, edge = {self.start}, {self.start}
        for _ in range(steps):
            edge = {b for belief in edge for a in self.actions for _, _, b in self.branches(belief, a)} - seen
            seen |= edge
        return seen

    def bisimulation_classes(self, steps: int) -> int:
        """Classes of reachable beliefs: equal rewards and chances of observations, equivalent successors."""
        beliefs = self.beliefs(steps)
        kind: dict[Belief, object] = {b: tuple(self.reward(b, a) for a in self.actions) for b in beliefs}

        def outcomes(belief: Belief, a: int) -> tuple[object, ...]:
            return tuple((o, p, kind[after]) for o, p, after in self.branches(belief, a))

        while True:
            signature = {b: (kind[b], *(outcomes(b, a) for a in self.actions)) for b in beliefs}
            number = {s: i for i, s in enumerate(set(signature.values()))}
            if len(number) == len(set(kind.values())):
                return len(number)
            kind = {b: number[signature[b]] for b in beliefs}


def discounts() -> list[Fraction]:
    return [Fraction(0), Fraction(1, 3), Fraction(19, 20), Fraction(1)]


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("tiger:1/2", 4),
        ("tiger:1", 5),
        ("tiger:0", 4),
        *((f"tmaze:{n}:{q}", 4) for n in (2, 3, 4) for q in ("0", "1/2", "0.7", "1")),
        ("flip:2", 5),
        ("flip:3", 5),
        ("repo_repair:2:2", 5),
        ("repo_repair:3:2", 4),
        ("repo_repair:1:3", 4),
        ("repo_repair:2:1", 4),
        ("repo_repair:1:1", 4),
        *((f"ticket_routing:{q}:{c}", 2) for q in ("1/12", "0", "0.3", "0.9") for c in ("0", "1/20", "1/2")),
        ("ticket_routing:1:1/20", 3),
        ("ticket_routing:1/12:1/20", 3),
        ("drift", 7),
    ],
)
def test_closed_forms_are_the_values_found_by_exhaustive_search(name: str, steps: int) -> None:
    known, search = task(name), Search(task(name).model)
    for discount, horizon in itertools.product(discounts(), range(1, steps + 1)):
        criterion = Criterion(discount, horizon)
        assert known.optimal(criterion) == search.optimal(discount, horizon), criterion
        # Enumerating A**horizon sequences is dear where A is 9: the shorter horizons already tell.
        if len(search.actions) ** horizon <= 8000:
            assert known.open_loop(criterion) == search.open_loop(discount, horizon), criterion


@pytest.mark.parametrize("name", ["tiger:1/2", "tiger:1", "tiger:0", "tmaze:3:0.7", "flip:2", "drift"])
def test_discounted_closed_forms_are_the_limit_of_long_horizons(name: str) -> None:
    known, search, discount, steps = task(name), Search(task(name).model), Fraction(1, 3), 9
    endless = known.optimal(Criterion(discount))
    tail = discount**steps / (1 - discount) * int(np.abs(known.model.R).max())
    assert endless is not None
    assert abs(endless - search.optimal(discount, steps)) <= tail
    blind, short = known.open_loop(Criterion(discount)), min(steps, 5)
    tail = discount**short / (1 - discount) * int(np.abs(known.model.R).max())
    assert blind is not None
    assert abs(blind - search.open_loop(discount, short)) <= tail


@pytest.mark.parametrize(
    "name", ["repo_repair", "repo_repair:3:2", "ticket_routing:1", "ticket_routing:1/12"]
)
def test_endless_closed_forms_of_tasks_that_end_are_those_of_a_horizon_past_the_end(name: str) -> None:
    known, search, discount = task(name), Search(task(name).model), Fraction(9, 10)
    assert known.optimal(Criterion(discount)) == search.optimal(discount, 6)


def test_tiger_has_the_published_values_and_one_belief_for_each_count_of_growls() -> None:
    search = Search(task("tiger").model)
    assert search.optimal(Fraction(1), 3) == Fraction("2.72")
    assert search.open_loop(Fraction(1), 3) == -3
    for steps in range(6):
        assert len(search.beliefs(steps)) == 2 * steps + 1
    assert len(Search(task("tiger:0.5").model).beliefs(5)) == 1
    assert task("tiger:0.5").optimal(Criterion(Fraction(19, 20))) == -20
    assert task("tiger").open_loop(Criterion(Fraction(19, 20))) == -20
    assert task("tiger").optimal(Criterion(Fraction(19, 20))) is None


@pytest.mark.parametrize("n", [2, 3, 5])
def test_tmaze_and_flip_have_the_designed_sizes(n: int) -> None:
    maze = task(f"tmaze:{n}")
    assert len(Search(maze.model).beliefs(n + 1)) == 2 * n + 2
    assert maze.horizon == n + 1
    flag = task(f"flip:{n}")
    assert flag.horizon == n + 2
    assert flag.model.num_states == 4 * n + 7


@pytest.mark.parametrize("n", [2, 3, 4])
def test_flip_has_2n_plus_5_bisimulation_classes_and_2n_plus_8_beliefs(n: int) -> None:
    # A reading is a function of the state reached, so after it the belief still holds phi as well as y: the
    # six beliefs of stage n + 1 (four read, two not) are three for every decision.
    search = Search(task(f"flip:{n}").model)
    assert len(search.beliefs(n + 2)) == 2 * n + 8
    assert search.bisimulation_classes(n + 2) == 2 * n + 5


def walk(model: POMDP, state: str, *actions: str) -> list[str]:
    """What a run from a named state shows, where it can show one thing only."""
    belief: dict[int, Fraction] = {model.state_index(state): Fraction(1)}
    shown: list[str] = []
    for action in actions:
        a = model.action_index(action)
        ((t, p),) = [(t, p) for s in belief for t, p in model.exact.T[a].row(s).items()]
        ((o, q),) = model.exact.Z[a].row(t).items()
        assert p == q == 1
        belief = {t: p}
        shown.append(model.observations[o])
    return shown


def test_listening_points_to_the_tiger_with_its_accuracy() -> None:
    model = task("tiger:0.8").model
    heard = model.exact.Z[model.action_index("listen")]
    for side in ("tiger-left", "tiger-right"):
        row = heard.row(model.state_index(side))
        assert row[model.observation_index(side)] == Fraction(4, 5)


def test_tiger_is_the_published_file(benchmarks: Path) -> None:
    ours, theirs = task("tiger").model, read(benchmarks / "tiger.95.pomdp")
    assert ours.digest == theirs.digest
    assert (ours.states, ours.actions, ours.observations) == (
        theirs.states,
        theirs.actions,
        theirs.observations,
    )


def test_a_maze_shows_its_cue_at_the_first_step_and_the_junction_from_the_last() -> None:
    maze = task("tmaze:3").model
    assert walk(maze, "goal-left-at-0", "go", "go", "go", "go", "turn-left") == [
        "cue-left",
        "-",
        "T",
        "T",
        "-",
    ]
    assert walk(maze, "goal-right-at-0", "go", "turn-right", "go") == ["cue-right", "-", "-"]


def test_a_flipped_flag_reads_as_its_opposite_and_only_a_reading_shows_it() -> None:
    model = task("flip:3").model
    assert walk(model, "stage-1-y1-u1", "flip", "wait", "read", "say-1") == ["t2", "t3", "flag-0", "none"]
    assert walk(model, "stage-1-y1-u1", "wait", "flip", "read", "say-1") == ["t2", "t3", "flag-1", "none"]
    assert walk(model, "stage-1-y0-u0", "flip", "wait", "read") == ["t2", "t3", "flag-1"]
    assert walk(model, "stage-1-y0-u0", "read", "wait", "wait") == ["t2", "t3", "none"]


def test_a_wrong_flip_costs_four_so_that_open_loop_is_worth_minus_two_steps_of_discount() -> None:
    for discount in discounts():
        assert task("flip:3").open_loop(Criterion(discount, 5)) == -2 * discount


def test_repo_repair_has_the_designed_values_and_beliefs() -> None:
    assert len(Search(task("repo_repair").model).beliefs(4)) == 14
    for name, blind, exit_code in (
        ("repo_repair:2:2", Fraction(1, 5), Fraction(2, 5)),
        ("repo_repair:3:2", Fraction(7, 60), Fraction(7, 30)),
    ):
        repair = task(name)
        assert repair.criterion() == Criterion(Fraction(1), 4)
        assert repair.optimal(repair.criterion()) == Fraction(17, 20)
        assert repair.open_loop(repair.criterion()) == blind
        assert Search(exit_code_only(repair.model)).optimal(Fraction(1), 4) == exit_code


def exit_code_only(model: POMDP) -> POMDP:
    """The model whose tests no longer say where they fail."""
    merged = {o: "failed" if o.startswith("fails-in") else o for o in model.observations}
    names = list(dict.fromkeys(merged.values()))
    Z: list[list[dict[int, Fraction]]] = []
    for a in range(model.num_actions):
        rows: list[dict[int, Fraction]] = []
        for row in model.exact.Z[a].rows():
            rows.append({names.index(merged[model.observations[o]]): p for o, p in row.items()})
        Z.append(rows)
    return POMDP.build(
        states=model.states,
        actions=model.actions,
        observations=names,
        T=model.exact.T,
        Z=Z,
        R=model.exact.R,
        start=model.exact.start,
    )


def test_every_call_of_repo_repair_but_finish_is_idempotent() -> None:
    model = task("repo_repair").model
    for a, action in enumerate(model.actions):
        once = model.T[a].toarray()
        assert np.array_equal(once @ once, once), action


def test_routing_is_worth_no_feedback_where_classifying_says_nothing() -> None:
    for c in ("0", "0.05"):
        routing = task(f"ticket_routing:1/12:{c}")
        criterion = routing.criterion()
        assert criterion == Criterion(Fraction(1), 2)
        assert routing.optimal(criterion) == routing.open_loop(criterion) == Fraction(1, 4)
    assert task("ticket_routing").optimal(Criterion(Fraction(1), 3)) is None


@pytest.mark.parametrize("n", [1, 2, 6])
def test_drift_gains_nothing_from_feedback_while_its_belief_moves(n: int) -> None:
    drift = task("drift")
    assert drift.optimal(Criterion(Fraction(1), n)) == Fraction(n - 1, 2)
    beliefs = Search(drift.model).beliefs(n)
    assert len(beliefs) == n + 1


@pytest.mark.parametrize("name", ["tmaze:3:0.9", "flip:2", "repo_repair", "ticket_routing"])
def test_a_task_that_ends_has_one_terminal_state(name: str) -> None:
    model = task(name).model
    assert [model.states[s] for s in np.flatnonzero(model.terminal)] == ["end"]


@pytest.mark.parametrize("name", ["tmaze:3:0.9", "flip:2", "repo_repair"])
def test_the_natural_horizon_is_the_shortest_that_loses_nothing(name: str) -> None:
    search, horizon = Search(task(name).model), task(name).horizon
    assert horizon is not None
    values = [search.optimal(Fraction(1), steps) for steps in (horizon - 1, horizon, horizon + 1)]
    assert values[0] < values[1] == values[2]


@pytest.mark.parametrize(
    "name", [*SMALL, "tiger:0.5", "tmaze:2:1/3", "repo_repair:3:2", "ticket_routing:1/12"]
)
def test_a_canonical_name_gives_the_same_model_again(name: str) -> None:
    first = task(name)
    again = task(first.name)
    assert again.name == first.name == first.model.name
    assert again.model.digest == first.model.digest
    assert again.model.observations == first.model.observations


def test_names_accept_dashes_spaces_and_any_exact_form_of_a_number() -> None:
    assert task(" Repo-Repair : 3 : 2").name == "repo_repair:3:2"
    assert task("tmaze:4:0.90").name == task("tmaze:4:9/10").name == "tmaze:4:0.9"
    assert task("tmaze:20:1e-3").name == "tmaze:20:0.001"
    assert task("tmaze:2:1/3").name == "tmaze:2:1/3"
    assert task("tmaze:3").name == "tmaze:3:1"
    assert task("tmaze:2:1/3").model.exact.Z[0].row(1) == {0: Fraction(1, 3), 1: Fraction(2, 3)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tigre", "no library task 'tigre' (did you mean tiger?); known: tiger[:accuracy], tmaze:n[:q], "),
        ("", "no library task ''; known: tiger"),
        ("tmaze", "tmaze needs n (tmaze:n[:q]); such as tmaze:4:0.9"),
        ("tmaze:1", "tmaze needs n as a whole number in 2..1000, such as 4; got 1"),
        ("tmaze:2.5", "whole number in 2..1000, such as 4; got 2.5"),
        ("tmaze:2000", "in 2..1000"),
        ("tmaze:4:1.01", "tmaze needs q as a rational in 0..1, such as 0.9; got 1.01"),
        ("tmaze:4:-1/2", "got -1/2"),
        ("tmaze:4:often", "got 'often'"),
        ("tmaze:4:nan", "got 'nan'"),
        ("tmaze::1", "got ''"),
        ("tiger:0.85:3", "tiger got 2 arguments but takes at most 1 (tiger[:accuracy])"),
        ("drift:3", "drift got 1 arguments but takes none"),
        ("repo_repair:0", "in 1..20"),
    ],
)
def test_a_wrong_name_is_refused_in_one_line_that_shows_a_right_one(text: str, said: str) -> None:
    with pytest.raises(ModelError) as refusal:
        task(text)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_tasks_lists_every_family_with_one_line() -> None:
    lines = tasks()
    assert list(lines) == [
        "tiger[:accuracy]",
        "tmaze:n[:q]",
        "flip:n",
        "repo_repair[:k1][:k2]",
        "ticket_routing[:q][:c]",
        "drift",
    ]
    assert all(line and "\n" not in line for line in lines.values())
    assert [family.usage for family in FAMILIES] == list(lines)


def sizes(name: str) -> Iterator[tuple[str, int]]:
    known = task(name)
    yield from zip(known.model.actions, known.call_tokens, strict=True)
    yield from zip(known.model.observations, known.result_tokens, strict=True)


@pytest.mark.parametrize("name", SMALL)
def test_every_call_and_result_has_a_size_with_a_reason(name: str) -> None:
    assert all(isinstance(size, int) and size > 0 for _, size in sizes(name))
    assert task(name).token_note.startswith("This project's choice")
    assert task(name).source


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError, match="call_tokens needs a positive size for each of flip, take"):
        dataclasses.replace(task("drift"), call_tokens=(20,))
    with pytest.raises(ModelError, match="result_tokens"):
        dataclasses.replace(task("drift"), result_tokens=(0,))


def test_a_test_log_is_the_longest_result_of_a_repair() -> None:
    size = dict(sizes("repo_repair"))
    assert size["fails-in-0"] == size["fails-in-1"] == max(task("repo_repair").result_tokens)
    assert size["run-tests"] < size["patch-0-0"]
