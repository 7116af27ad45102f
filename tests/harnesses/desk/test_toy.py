"""The toy decider: its regression is the optimum, it sees no label, and its reports mean what they say."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from harnesses.desk.decider import Choice, DeciderError, Noul
from harnesses.desk.generator import LARGE, TEST, guard_item, route_item, split
from harnesses.desk.regression import Logistic
from harnesses.desk.text_features import Vocabulary
from harnesses.desk.toy import Toy, Trained, asked, toy
from harnesses.guard.binomial import upper_end
from harnesses.guard.region import GuardError


@pytest.fixture(scope="module")
def decider() -> Toy:
    return toy()


def data(seed: int, classes: int) -> tuple[csr_array, list[int]]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(200, 6)) * (random.uniform(size=(200, 6)) < 0.5)
    scores = x @ random.normal(size=(6, classes))
    y = [int(row.argmax()) for row in scores + random.gumbel(size=scores.shape)]
    return csr_array(x), y


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("strength", [0.5, 10.0])
def test_the_regression_is_the_one_of_scikit_learn(classes: int, strength: float) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = data(classes, classes)
    mine = Logistic.fit(x, y, strength, tolerance=1e-9).predict(x)
    theirs = linear.LogisticRegression(C=strength, tol=1e-10, max_iter=5000).fit(x, y).predict_proba(x)
    # With two classes theirs has one column of weights, as ours: the same penalty.
    assert np.abs(mine - theirs).max() < 1e-5


@pytest.mark.parametrize("classes", [2, 3])
def test_no_small_step_makes_the_loss_smaller(classes: int) -> None:
    x, y = data(7, classes)
    strength = 2.0
    found = Logistic.fit(x, y, strength, tolerance=1e-10)

    def loss(model: Logistic) -> float:
        p = model.predict(x)[np.arange(len(y)), [model.classes.index(one) for one in y]]
        return float(-np.log(p).sum() + (model.weights**2).sum() / (2 * strength))

    random, best = np.random.default_rng(0), loss(found)
    for _ in range(50):
        step = 1e-3 * random.normal(size=found.weights.shape)
        shift = 1e-3 * random.normal(size=found.intercepts.shape)
        assert (
            loss(replace(found, weights=found.weights + step, intercepts=found.intercepts + shift))
            > best - 1e-9
        )


def test_labels_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="two kinds"):
        Logistic.fit(csr_array(np.eye(3)), [1, 1, 1], 1.0)


def test_a_vocabulary_keeps_what_stands_in_three_items_and_sees_nothing_new() -> None:
    states = [{"request": text} for text in ("tram stop", "tram line", "tram", "bus")]
    vocabulary = Vocabulary.of(states)
    assert "tram" in vocabulary.column and "bus" not in vocabulary.column
    assert vocabulary.matrix([{"request": "bus"}]).nnz <= vocabulary.matrix([{"request": "tram"}]).nnz
    assert vocabulary.matrix([{"request": "zeppelin"}]).shape == (1, len(vocabulary.column))


def test_it_sees_neither_label_nor_rule_nor_facts(decider: Toy) -> None:
    items = split(TEST).guard[:20]
    blind = [replace(item, allowed=not item.allowed, rule="P9", facts={}) for item in items]
    ask = [item.question() for item in items]
    assert decider.noul_all(ask) == decider.noul_all([item.question() for item in blind])
    assert not {"rule", "allowed", "facts", "label"} & set(ask[0].state)


def test_one_by_one_is_all_at_once_in_any_order(decider: Toy) -> None:
    emails = [item.question() for item in split(TEST).guard[:30]]
    requests = [item.question() for item in split(TEST).route[:30]]
    assert decider.noul_all(emails) == [decider.noul(one) for one in emails]
    assert decider.noul_all(emails[::-1]) == decider.noul_all(emails)[::-1]
    assert decider.choose_all(requests) == [decider.choose(one) for one in requests]
    assert decider.noul_all([]) == [] and decider.choose_all([]) == []


def test_other_questions_are_refused(decider: Toy) -> None:
    with pytest.raises(DeciderError, match="not fitted on"):
        decider.noul(Noul("Is it raining?"))
    with pytest.raises(DeciderError, match="not fitted on this choice"):
        decider.choose(Choice("Which?", {"a": "", "b": ""}))
    with pytest.raises(GuardError, match="calibrator"):
        toy("astrology")


def test_what_it_reports_as_certain_is_so_on_unseen_emails(decider: Toy) -> None:
    emails = asked(tuple(guard_item(LARGE, number) for number in range(3000)))
    p = np.array(decider.noul_all([item.question() for item in emails]))
    allowed = np.array([item.allowed for item in emails])
    acted = p >= 31 / 32
    bad = int((~allowed[acted]).sum())
    assert acted.sum() > 800
    assert upper_end(bad, int(acted.sum()), 0.95) < 1 / 32
    assert abs(p.mean() - allowed.mean()) < 0.02


def test_its_routes_are_mostly_right_on_unseen_requests(decider: Toy) -> None:
    items = [route_item(LARGE, number) for number in range(600)]
    answers = decider.choose_all([item.question() for item in items])
    right = np.array([answer.choice == item.route for answer, item in zip(answers, items)])
    p = np.array([answer.p for answer in answers])
    assert right.mean() > 0.9
    assert abs(p.mean() - right.mean()) < 0.04


def test_it_is_fitted_on_a_fresh_machine_in_under_a_minute_and_alike() -> None:
    train, calibration = (
        replace(part, route=part.route[:600], guard=part.guard[:800])
        for part in map(split, ("train", "calibration"))
    )
    began = time.process_time()
    made: Any = [Trained.of(train, calibration) for _ in range(2)]
    # A quarter of the data, twice; the whole fit takes some 7 s where nothing else runs.
    assert time.process_time() - began < 60
    assert np.array_equal(made[0].guard_reports, made[1].guard_reports)
    assert np.array_equal(made[0].route_reports, made[1].route_reports)
