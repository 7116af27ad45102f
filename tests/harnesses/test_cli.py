"""The commands on a harness: their JSON, exit code 2 and one line for every bad input, nothing else on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import main

MAP_KEYS = {
    "map", "contexts", "sufficient", "witness", "recall", "stateless", "stateless_deterministic", "loss", "bits",
}  # fmt: skip
Run = Callable[..., Any]
SPEC = 'task = "library:tiger"\nhorizon = 2\ndiscount = 1\ncontext = "last:1"\n'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run(*arguments)`: the parsed stdout of a command that succeeds and says nothing else."""

    def call(*arguments: str) -> Any:
        assert main(list(arguments)) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return json.loads(printed.out)

    return call


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., str]:
    """`spec(text)`: the path of a SPEC.toml with the text after the plain entries."""

    def write(text: str = "", whole: str = SPEC, name: str = "spec.toml") -> str:
        path = tmp_path / name
        path.write_text(whole + text)
        return str(path)

    return write


def test_context_prints_each_map_as_it_was_typed(run: Run) -> None:
    question = ("--horizon", "4", "--discount", "1", "--time", "4", "--json")
    found = run("context", "library:flip:2", "--map", "last:1", "--map", "last-messages:4", *question)
    assert [entry["map"] for entry in found["maps"]] == ["last:1", "last-messages:4"]
    lossy, whole = found["maps"]
    for entry in found["maps"]:
        assert set(entry) >= MAP_KEYS
        for name in ("recall", "stateless", "stateless_deterministic", "loss"):
            assert set(entry[name]) == {"lower", "upper"}
    assert (lossy["sufficient"], whole["sufficient"], whole["witness"]) == (False, True, None)
    one, other = lossy["witness"]["histories"]
    assert len(one) == len(other) and one[-1] == other[-1] and one != other
    # Vo(last(k)) is 0 for 1 <= k < n and V* = gamma^(n+1) at k = n.
    assert abs(lossy["stateless"]["upper"]) <= 1e-6 and lossy["loss"]["lower"] >= 1 - 1e-6
    assert whole["stateless"]["lower"] >= 1 - 1e-6 and whole["loss"]["upper"] <= 1e-6
    assert lossy["recall"]["lower"] >= 1 - 1e-6


@pytest.mark.parametrize("n", [2, 3])
def test_the_smallest_map_of_the_flip_has_two_n_and_five_contexts(run: Run, n: int) -> None:
    found = run(
        "context", f"library:flip:{n}", "--smallest", "--horizon", str(n + 2), "--discount", "1", "--json"
    )
    assert found["belief_contexts"] == found["bisimulation_contexts"] == 2 * n + 5
    assert 1 <= found["value_contexts"] <= found["bisimulation_contexts"]


def test_a_spec_is_asked_about_its_own_map_or_others(run: Run, spec: Callable[..., str]) -> None:
    assert [e["map"] for e in run("context", spec(), "--json")["maps"]] == ["last:1"]
    found = run("context", spec(), "--map", "null", "--horizon", "1", "--json")
    assert (found["maps"][0]["map"], found["horizon"], found["discount"]) == ("null", 1, 1.0)


def test_attribute_prints_the_total_and_its_three_parts(run: Run, spec: Callable[..., str]) -> None:
    found = run("attribute", spec('tools = ["select:listen"]\n'), "--json")
    for name in ("total", "tools_control_loop", "context", "model"):
        assert found[name]["lower"] <= found["midpoints"][name] <= found[name]["upper"] + 1e-9
    parts = [found["midpoints"][name] for name in ("tools_control_loop", "context", "model")]
    assert found["midpoints"]["total"] == pytest.approx(sum(parts))
    assert found["certified"] is True


def test_attribute_against_another_harness_shares_the_difference(run: Run, spec: Callable[..., str]) -> None:
    wider = spec('loop = ["malformed:1/4"]\n', SPEC.replace("last:1", "counter:last:1"), "wider.toml")
    found = run("attribute", spec(), "--against", wider, "--json")["against"]
    assert set(found["shapley"]) == {"loop", "context"}
    assert sum(found["shapley"].values()) == pytest.approx(found["difference"])
    same = run("attribute", spec(), "--against", spec(), "--json")["against"]
    assert (same["shapley"], same["difference"]) == ({}, 0)


def test_describe_prints_seven_components_and_three_sources(run: Run, spec: Callable[..., str]) -> None:
    found = run("describe", spec('tools = ["select:listen,open-left"]\nmodel = "random"\n'), "--json")
    assert [c["symbol"] for c in found["components"]] == ["S", "A", "T", "O", "Z", "R", "gamma"]
    assert all(c["sentence"].endswith(".") for c in found["components"])
    assert sorted(s["kind"] for s in found["sources"]) == ["environment", "model", "tool"]
    assert found["coarser"]["actions"] == ["open-right"]


def test_simulate_takes_a_spec_and_prints_j_beside_the_mean(run: Run, spec: Callable[..., str]) -> None:
    found = run("simulate", spec('model = "random"\n'), "--episodes", "2000", "--seed", "1", "--json")
    exact = run("attribute", spec('model = "random"\n'), "--time", "2", "--json")["values"]["achieved"]
    text = json.dumps(found)
    assert any(abs(number - exact["lower"]) < 1e-6 for number in numbers(found)), text


def numbers(value: object) -> list[float]:
    """All numbers in a JSON value."""
    if isinstance(value, dict):
        return [n for entry in value.values() for n in numbers(entry)]
    if isinstance(value, list):
        return [n for entry in value for n in numbers(entry)]
    return [float(value)] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("command", ["attribute", "describe", "context"])
def test_the_tables_for_a_reader_name_what_they_show(
    command: str, spec: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, spec()]) == 0
    printed = capsys.readouterr().out
    assert "library:tiger" in printed and "last:1" in printed
    assert all(len(line) < 400 for line in printed.splitlines())


TIGER = ("context", "library:tiger")
BAD: dict[str, tuple[str, ...]] = {
    "no context map 'nope'": (*TIGER, "--map", "nope:2"),
    "no context map ''": (*TIGER, "--map", ""),
    "last needs a number of pairs": (*TIGER, "--map", "last:-1"),
    "give full:6 or --horizon": (*TIGER, "--map", "full"),
    "horizon -3": (*TIGER, "--map", "last:1", "--horizon", "-3"),
    "discount 1 without a horizon": (*TIGER, "--map", "last:1", "--discount", "1"),
    "discount 2": (*TIGER, "--map", "last:1", "--discount", "2"),
    "give at least one context map": TIGER,
    "--smallest asks about the task": (*TIGER, "--map", "last:1", "--smallest"),
    "x is not a number >= 0": (*TIGER, "--map", "last:1", "--gap", "x"),
    "nan is not a positive number": (*TIGER, "--map", "last:1", "--time", "nan"),
    "no_such_family": ("context", "library:no_such_family", "--map", "last:1"),
    "FOLDER": ("context", "FOLDER", "--map", "last:1"),
    "FOLDER: Is a directory": ("attribute", "FOLDER"),
    "missing.toml: No such file": ("describe", "missing.toml"),
    "BINARY: not TOML": ("attribute", "BINARY"),
    "names its own model": ("simulate", "GOOD", "--policy", "random"),
    "task, what counts and model": ("attribute", "GOOD", "--against", "OTHER"),
    "no action 'nope'": ("attribute", "RULES"),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    message: str, spec: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\x00\xff\xfe\x80")
    places = {
        "FOLDER": str(tmp_path),
        "BINARY": str(binary),
        "GOOD": spec(),
        "OTHER": spec('model = "random"\n', name="other.toml"),
        "RULES": spec('model = {kind = "rules", otherwise = "nope"}\n', name="rules.toml"),
    }
    arguments = [places.get(word, word) for word in BAD[message]]
    assert main([*arguments, "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    for name, place in places.items():
        message = message.replace(name, place)
    assert message in printed.err
    assert printed.err.count("\n") == 1
