"""The command `memo`: Markdown and JSON, specs with and without a task, and one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.__main__ import main
from harnesses.memo_examples import EXAMPLES

ANSWERS = """
[memo]
tasks = "Bugs of two kinds."
tools = {answer = "varies", count = 3, why = "As the findings ask."}
verifier = {answer = "deterministic", name = "tests", reliability = 0.9, why = "They run."}
failure = {answer = "low", why = "A sandbox."}
subtasks = {answer = "shared", why = "One repository."}
variance = {answer = "high", why = "Bugs differ."}
persistence = {answer = "no", why = "It can be run again."}
stronger_models = {answer = true, why = "They gain."}
"""
ASKED = ANSWERS + 'sequence = {answer = "yes", why = "Always the same."}\n'
COMPUTED = 'task = "library:repo_repair"\n' + ANSWERS
FIELDS = {
    "title",
    "task_distribution",
    "axes",
    "architecture",
    "form",
    "dominant",
    "path",
    "what_would_change",
    "verification_plan",
    "framework",
}


@pytest.fixture
def ask(tmp_path, monkeypatch, capfd):
    """Run `memo`; gives its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, spec: str | None = None) -> tuple[int, str, str]:
        if spec is not None:
            Path("spec.toml").write_text(spec)
        code = main(["memo", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_prints_one_object_and_one_page(ask, name):
    code, out, err = ask("--example", name.lower(), "--json")
    assert (code, err) == (0, "") and set(json.loads(out)) == FIELDS
    code, page, _ = ask("--example", name)
    assert code == 0 and [line for line in page.splitlines() if line.startswith("#")] == [
        f"# Decision memo: example {name}",
        "## 1. Task distribution",
        "## 2. Axes",
        f"## 3. Architecture: {json.loads(out)['architecture']}",
        "## 4. What would change the decision",
        "## 5. Verification plan",
        f"## Framework or hand-written loop: {json.loads(out)['framework']['choice']}",
    ]


def test_a_spec_without_a_task_is_answered_from_its_table(ask):
    code, out, err = ask("spec.toml", "--json", spec=ASKED)
    found = json.loads(out)
    assert (code, err, found["architecture"]) == (0, "", "workflow")
    assert found["axes"][1]["evidence"] is None and found["axes"][0]["value"].startswith("3 tools")


@pytest.mark.parametrize("harness", ["", 'context = "last:2"\n'])
def test_a_spec_with_a_task_has_its_second_axis_computed(ask, harness):
    """With a context map or without one: what observing is worth does not depend on it."""
    code, out, err = ask("spec.toml", "--json", spec=harness + COMPUTED + "tolerance = 0.1\n")
    found = json.loads(out)
    evidence = found["axes"][1]["evidence"]
    assert (code, err, found["architecture"]) == (0, "", "single agent")
    assert evidence["value_of_feedback"]["lower"] <= 0.65 <= evidence["value_of_feedback"]["upper"]
    assert evidence["cost_of_agency"] == {"lower": 0.1, "upper": 0.1}


def test_a_distribution_of_tasks_is_evidence_for_the_fifth_axis(ask):
    tasks = 'task = [{task = "library:ticket_routing"}, {task = "library:ticket_routing:0.8", weight = 2}]\n'
    code, out, err = ask("spec.toml", "--json", spec=tasks + ANSWERS + "tolerance = 0.1\n")
    assert (code, err) == (0, "")
    assert json.loads(out)["axes"][4]["evidence"] == {
        "tasks": ["library:ticket_routing", "library:ticket_routing:0.8"]
    }


BAD = {
    "neither": ([], None, "one of them"),
    "both": (["spec.toml", "--example", "A"], ASKED, "one of them"),
    "unknown example": (["--example", "D"], None, "known: A, B, C, E1.4, E1.6"),
    "absent file": (["absent.toml"], None, "absent.toml"),
    "no TOML": (["spec.toml"], "[memo", "not TOML"),
    "missing answers": (["spec.toml"], '[memo]\ntasks = "x"\n', "spec.toml: [memo] lacks tools ("),
    "no memo": (["spec.toml"], 'task = "library:drift"\n', "[memo] lacks tasks ("),
    "no cost": (["spec.toml"], COMPUTED, "price_per_step or tolerance"),
    "a harness without a task": (["spec.toml"], 'context = "last:1"\n' + ASKED, "a spec without a task"),
    "unknown branch": (["spec.toml"], COMPUTED + 'tolerance = 1\nbranch_on = ["fails"]\n', "branch_on"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2(ask, name):
    arguments, spec, message = BAD[name]
    code, out, err = ask(*arguments, spec=spec)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1
