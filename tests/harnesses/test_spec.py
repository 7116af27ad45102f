"""SPEC.toml: every form of every entry, and one line that names the offending entry."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from harnesses.context import parse_map
from harnesses.spec import Spec, is_spec, parse_spec, plain_spec, read_spec
from pomdp.model import ModelError

BASE = 'task = "library:tiger"\nhorizon = 3\n'
PLAIN = BASE + 'context = "last:1"\n'


def parsed(text: str) -> Spec:
    return parse_spec(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        'control = ["timeout:listen:1/10", "step_limit:6"]',
        'control = ["timeout:listen:0.1", "step-limit:6"]',
        'control = [{name = "timeout", action = "listen", p = 0.1}, {name = "step-limit", n = 6}]',
        'control = {timeout = "listen:1/10", step_limit = 6}',
        'control = {timeout = ["listen", "1/10"], step-limit = {n = 6}}',
    ],
)
def test_every_form_of_a_part_says_the_same(text: str) -> None:
    for whole in (PLAIN + text, BASE + f'[harness]\ncontext = "last:1"\n{text}'):
        assert parsed(whole).harness.json() == {
            "tools": [],
            "control": ["timeout:listen:1/10", "step_limit:6"],
            "loop": [],
            "context": "last:1",
        }


@pytest.mark.parametrize(
    "text", ['loop = "malformed:1/10"', 'loop = ["malformed:1/10"]', 'loop = {malformed = "1/10"}']
)
def test_a_single_constructor_needs_no_list(text: str) -> None:
    assert parsed(PLAIN + text).harness.json()["loop"] == ["malformed:1/10"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('"last:2"', "last:2"),
        ('"last-messages:3"', "last_messages:3"),
        ('["last:1", "counter"]', "counter:last:1"),
    ],
)
def test_a_context_map_is_a_text_or_a_list_of_wrappers(text: str, name: str) -> None:
    assert parsed(BASE + f"context = {text}").harness.context.name == name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"naive"', "naive"),
        ('"bayes:0.5"', "bayes:0.5"),
        ('{kind = "bayes", temperature = 0.5}', "bayes:0.5"),
        ('{kind = "random"}', "random"),
        ('{kind = "rules", otherwise = "listen", rules = {"-" = "listen"}}', "rules"),
    ],
)
def test_a_model_is_a_kind_with_a_temperature_or_a_table(text: str, shown: str) -> None:
    assert parsed(PLAIN + f"model = {text}").model.text == shown
    assert parsed(PLAIN).model.text == "optimal"


def test_what_counts_is_the_specs_then_the_tasks() -> None:
    assert parsed(PLAIN).criterion.horizon == 3
    assert parsed('task = "library:tiger"\ncontext = "null"').criterion.text() == "discount 19/20"
    both = parsed(PLAIN + "discount = 0.5")
    assert both.criterion.text() == "discount 1/2, horizon 3"
    # A command line changes what it names and keeps the rest.
    assert both.asked(None, 7).criterion.text() == "discount 1/2, horizon 7"
    assert both.asked("0.9", None).criterion.text() == "discount 9/10, horizon 3"
    assert both.asked(None, None) is both
    # A task without a discount has its own length.
    assert parsed('task = "library:repo_repair"\ncontext = "null"').criterion.horizon is not None


def test_a_task_may_be_a_file_beside_the_spec_or_a_distribution(tmp_path: Path) -> None:
    (tmp_path / "one.pomdp").write_text(
        "discount: 0.5\nvalues: reward\nstates: 2\nactions: 2\nobservations: 1\nT: * identity\nO: * uniform\n"
        "R: 0 : * : * : * 1\n"
    )
    path = tmp_path / "spec.toml"
    path.write_text('task = "one.pomdp"\ncontext = "null"\n')
    spec = read_spec(path)
    assert (spec.task.num_states, spec.task_text) == (2, "one.pomdp")
    text = 'task = [{task = "library:flip:2", weight = 3}, {task = "library:flip:3"}]\ncontext = "last:1"\nhorizon = 5'
    mixed = parsed(text)
    assert sum(mixed.task.exact.start.values()) == 1
    first = [p for s, p in mixed.task.exact.start.items() if mixed.task.states[s].endswith("task-0")]
    assert sum(first) == Fraction(3, 4)


def test_tokens_stand_in_place_of_the_tasks() -> None:
    spec = parsed(
        PLAIN + "[tokens]\ndefault = 7\n[tokens.calls]\nlisten = 3\n[tokens.results]\ntiger-left = 200"
    )
    event = spec.sizes.event("listen", "tiger-left")
    assert (event.call.tokens, event.result.tokens) == (3, 200)
    assert spec.sizes.event("unheard", "unseen").call.tokens == 7


def test_the_shorthand_is_the_bare_task_under_one_map() -> None:
    spec = plain_spec("library:tiger", "0.9", 4, parse_map("last:2"))
    assert spec.criterion.text() == "discount 9/10, horizon 4"
    assert spec.harness.json() == {"tools": [], "control": [], "loop": [], "context": "last:2"}
    assert spec.with_context(parse_map("null")).harness.context.name == "null"
    assert spec.json()["harness"] == spec.harness.json()
    assert is_spec("a.toml") and not is_spec("a.pomdp") and not is_spec("library:tiger")


ERRORS = {
    'contxt = "last:1"': ("contxt", "did you mean context"),
    "horizon = 3": ("needs a context map",),
    'context = "lst:1"': ("no context map 'lst'", "known: full, last"),
    "context = 5": ("context: 5 is no map", "last:2"),
    'context = ["last:1", 2]': ("context: 2 is no map",),
    "context = {last = 1}": ("context: {'last': 1} is no map",),
    "context = []": ("context: [] is no map",),
    'context = "null"\n[harness]\ncontext = "null"': ("context stands in [harness] and at the top",),
    'context = "null"\nharness = 3': ("harness is 3", "[harness]"),
    'context = "null"\n[harness]\ntool = []': ("harness has no entry 'tool'", "did you mean tools"),
    'context = "null"\ncontrol = ["tiemout:*:1/10"]': (
        "control[0]",
        "tiemout",
        "did you mean timeout",
        "step_limit",
    ),
    'context = "null"\ncontrol = [3]': ("control[0]", "a text or a table"),
    'context = "null"\ncontrol = ["step_limit:0.5"]': ("control[0]", "step_limit"),
    'context = "null"\ncontrol = {timeout = "listen:2"}': ("control[0]", "timeout p"),
    'context = "null"\ntools = ["deny:listen"]': ("deny is a constructor of control, not of tools",),
    'context = "null"\nmodel = "clever"': ("no model 'clever'", "known: optimal, bayes"),
    'context = "null"\nmodel = 3': ("model is 3",),
    'context = "null"\nmodel = {temperature = 1}': ("model needs a kind",),
    'context = "null"\nmodel = {kind = 3}': ("model.kind is 3",),
    'context = "null"\nmodel = {kind = "bayes", heat = 1}': ("heat", "kind, temperature"),
    'context = "null"\nmodel = "bayes:warm"': ("model.temperature is 'warm'", "0.5"),
    'context = "null"\nmodel = {kind = "bayes", temperature = [1]}': ("model.temperature is [1]",),
    'context = "null"\nmodel = "rules"': ("otherwise",),
    'context = "null"\nmodel = {kind = "rules", otherwise = 3}': ("model.otherwise is 3",),
    'context = "null"\nmodel = {kind = "rules", otherwise = "a", rules = {b = 1}}': ("model.rules.b is 1",),
    'context = "null"\nhorizon = "3"': ("horizon is '3'", "horizon = 10"),
    'context = "null"\nhorizon = true': ("horizon is True",),
    'context = "null"\nhorizon = -3': ("horizon -3",),
    'context = "null"\ndiscount = [1]': ("discount is [1]",),
    'context = "null"\ndiscount = "x"': ("discount",),
    'context = "null"\ndiscount = 1': ("discount 1 without a horizon",),
    'context = "null"\ndiscount = nan': ("discount",),
    'context = "null"\n[tokens]\ndefault = "a"': ("default", "whole number"),
    'context = "null"\n[tokens]\ncals = 1': ("tokens has no entry 'cals'", "did you mean calls"),
    'context = "null"\n[tokens.calls]\nlisten = -3': ("listen", "-3"),
    'context = "null"\nmemo = 3': ("memo is 3",),
}


@pytest.mark.parametrize("text", ERRORS)
def test_a_bad_entry_is_named_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text('task = "library:tiger"\n' + text)
    with pytest.raises(ModelError) as caught:
        read_spec(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ") and "\n" not in line
    for part in ERRORS[text]:
        assert part in line


TASKS = {
    "": "the spec needs a task",
    "task = 3": "task is 3",
    "task = []": "task is an empty list",
    "task = [3]": "task[0] is 3",
    'task = [{task = "library:tiger", share = 1}]': "'share'",
    'task = [{task = "library:tiger", weight = "x"}]': "weight",
    'task = [{task = "library:tiger", weight = 0}]': "weight 0",
    'task = "library:tigr"': "tigr",
    'task = "missing.pomdp"': "missing.pomdp",
}


@pytest.mark.parametrize("text", TASKS)
def test_a_bad_task_is_named_in_one_line(text: str) -> None:
    with pytest.raises(ModelError) as caught:
        parsed(text + '\ncontext = "null"\nhorizon = 2')
    assert TASKS[text] in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_spec_is_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    for raw, message in ((b"\xff\xfe", "UTF-8"), (b"task = [", "not TOML"), (b"#" * 1_000_001, "bytes")):
        path.write_bytes(raw)
        with pytest.raises(ModelError, match=message) as caught:
            read_spec(path)
        assert str(path) in str(caught.value)
    for missing in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(OSError):
            read_spec(missing)
