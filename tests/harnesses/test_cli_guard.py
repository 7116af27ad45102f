"""The command `guard`: the interface that other programs rely on, its errors, and what survives a kill."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.__main__ import main
from harnesses.guard.demo import COSTS, demo_items
from harnesses.guard.monitor import Monitor
from harnesses.guard.region import Thresholds
from harnesses.guard.report import report
from harnesses.guard.selection import pac_threshold

PRICES = ["--wrong", "20", "--ask", "0.5", "--miss", "4", "--escalate", "3"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Exit code, standard output and standard error of `hpomdp guard ...`."""

    def guard(*words: Any) -> tuple[int, str, str]:
        code = main(["guard", *map(str, words)])
        out = capsys.readouterr()
        return code, out.out, out.err

    return guard


@pytest.fixture
def answer(run):
    """The object that `hpomdp guard ... --json` prints, exit code 0."""

    def guard(*words: Any, code: int = 0) -> dict[str, Any]:
        found, out, err = run(*words, "--json")
        assert (found, err) == (code, "")
        return json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))

    return guard


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch):
    """Gives the next command these bytes as its standard input."""

    def send(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))

    return send


@pytest.fixture
def demo_csv(tmp_path: Path, run) -> Path:
    """The 400 items as the command writes them."""
    path = tmp_path / "demo.csv"
    assert run("demo", "--csv", path)[0] == 0
    return path


def test_thresholds_are_exact_and_in_the_promised_form(answer) -> None:
    assert answer("thresholds", *PRICES) == {
        "tau_act": 0.96875,
        "tau_esc": 0.375,
        "tau_act_exact": "31/32",
        "tau_esc_exact": "3/8",
        "collapsed": False,
    }
    fallible = answer("thresholds", *PRICES, "--reviewer-error", 0.1)
    assert (fallible["tau_act_exact"], fallible["tau_esc_exact"]) == ("139/144", "31/56")
    router = ["--wrong", 4, "--ask", 2.5, "--miss", 2, "--escalate", 1]
    assert answer("thresholds", *router)["collapsed"] is True


@pytest.mark.parametrize(
    ("options", "sent", "bad", "asked", "escalated", "cost"),
    [
        ([], 129, 2, 218, 53, 1.34),
        (["--overconfident"], 211, 10, 189, 0, 1.63625),
        (["--tau-act", "31/32"], 130, 2, 217, 53, 1.33875),
        (["--tau-act", "31/32", "--overconfident"], 212, 10, 188, 0, 1.635),
        (["--tau-act", "0.2"], 381, 83, 0, 19, (20 * 83 + 3 * 19) / 400),
    ],
)
def test_the_demo_has_the_sources_counts(answer, options, sent, bad, asked, escalated, cost) -> None:
    found = answer("demo", *options)
    assert [found[name] for name in ("sent", "bad", "asked", "escalated")] == [sent, bad, asked, escalated]
    assert found["cost_per_case"] == cost
    assert found["uar"]["numerator"] == bad and found["uar"]["denominator"] == 100


def test_the_demos_file_gives_the_demos_report(answer, demo_csv: Path) -> None:
    found = answer("report", demo_csv, *PRICES)
    expected = report(demo_items(), Thresholds("31/32", "3/8"), COSTS).json()
    ignored = {"source", "calibration"}
    assert {k: v for k, v in found.items() if k not in ignored} == {
        k: v for k, v in expected.items() if k not in ignored
    }
    assert found["verdict"] == "undecided" and found["bound"] == 1 / 32
    assert found["share_upper"] == pytest.approx(0.0476, abs=5e-5)
    assert set(found["share"]) == {"numerator", "denominator", "rate", "se", "lower", "upper"}
    rounded = answer("report", demo_csv, *PRICES, "--tau-act", 0.969)
    assert (rounded["sent"], rounded["asked"]) == (129, 218)


def test_a_larger_sample_of_the_same_generator_is_certified_and_a_bad_guard_refuted(
    answer, run, tmp_path: Path
) -> None:
    calibrated, bold = tmp_path / "large.csv", tmp_path / "bold.csv"
    run("demo", "--count", 4000, "--csv", calibrated)
    run("demo", "--count", 4000, "--overconfident", "--kappa", 8, "--csv", bold)
    assert answer("report", calibrated, *PRICES)["verdict"] == "certified"
    assert answer("report", bold, *PRICES, code=1)["verdict"] == "refuted"


def test_people_read_zero_with_its_denominator_and_its_upper_end(run, tmp_path: Path) -> None:
    path = tmp_path / "zero.csv"
    path.write_text("p,y\n" + "0.5,0\n" * 30 + "0.99,1\n" * 5)
    code, out, _ = run("report", path, *PRICES)
    assert code == 0 and "0/30, at most 0.1157" in out and "0.0000 (se" not in out.split("calibration")[0]


def test_select_prints_the_certified_rule_beside_the_others(answer, run, demo_csv: Path) -> None:
    found = answer("select", demo_csv, "--uar", 0.05, "--delta", 0.1)
    items = demo_items()
    assert found["tau_act"] == pac_threshold(items.p, items.y, "0.05", "0.1").tau_act
    assert set(found["compared"]) == {"conformal", "naive"}
    assert found["compared"]["naive"]["tau_act"] < found["tau_act"]
    nothing = answer("select", demo_csv, "--uar", 0.001, "--delta", 0.1)
    assert nothing["tau_act"] is None and "are needed" in nothing["why"]
    assert "never act" in run("select", demo_csv, "--uar", 0.001)[1]


def test_select_by_share_prints_every_test(answer, run, demo_csv: Path) -> None:
    found = answer("select", demo_csv, "--share", 0.05, "--delta", 0.1, "--grid", "0.9,31/32")
    assert [test["tau"] for test in found["tests"]] == [31 / 32, 0.9]
    assert (found["tau_act"], found["tests"][0]["rejected"]) == (31 / 32, True)
    code, out, _ = run("select", demo_csv, "--share", 0.05, "--method", "holm")
    assert code == 0 and "certified" in out


def test_plan_gives_the_designs_sizes(answer, run) -> None:
    found = answer("plan", "--uar", ".05", "--delta", ".05", "--power", ".9")
    assert found["zero_failures"] == 59
    assert found["least"]["power"] >= 0.9
    assert answer("plan", "--uar", "1/32")["zero_failures"] == 95
    assert "59 disallowed items" in run("plan", "--uar", ".05", "--pi0", ".25")[1]


def test_a_monitor_resumes_from_its_file_and_counts_no_item_twice(answer, run, tmp_path: Path) -> None:
    whole, half, state = tmp_path / "whole.csv", tmp_path / "half.csv", tmp_path / "state.json"
    run("demo", "--count", 300, "--csv", whole)
    lines = whole.read_text().splitlines(keepends=True)
    half.write_text("".join(lines[:150]))
    straight = answer("monitor", whole, "--delta", ".05")
    answer("monitor", half, "--state", state)
    assert answer("monitor", whole, "--state", state) == straight
    assert answer("monitor", whole, "--state", state) == straight
    items = demo_items(300)
    assert straight["log_e"] == Monitor("0.05").run(items.p, items.y)[0].log_e

    later = tmp_path / "later.csv"
    later.write_text(lines[0] + "".join(lines[150:]))
    state.unlink()
    answer("monitor", half, "--state", state)
    before = state.read_bytes()
    code, out, err = run("monitor", later, "--state", state)
    assert code == 2 and "--later" in err and err.count("\n") == 1 and state.read_bytes() == before
    assert answer("monitor", later, "--state", state, "--later") == straight


def test_a_live_stream_is_the_same_as_a_file_and_alarms_as_it_happens(run, pipe, tmp_path: Path) -> None:
    path, state = tmp_path / "bold.csv", tmp_path / "state.json"
    run("demo", "--overconfident", "--csv", path)
    code, out, _ = run("monitor", path, "--json")
    assert code == 1 and json.loads(out)["alarm"]["time"] == 12
    pipe(path.read_bytes())
    live = run("monitor", "-", "--json", "--state", state)
    assert live[:2] == (1, out) and live[2] == "alarm at item 12\n"
    assert json.loads(state.read_text())["state"]["time"] == 400


def test_what_was_not_sent_is_passed_over(answer, demo_csv: Path) -> None:
    items = demo_items()
    sent = items.p >= 31 / 32
    found = answer("monitor", demo_csv, "--tau-act", "31/32", "--against", "1/32")
    assert (found["time"], found["bad"]) == (int(sent.sum()), int((items.y[sent] == 0).sum()))
    assert found["promised"] == pytest.approx(sent.sum() / 32)


def test_evidence_beyond_every_float_is_printed_and_is_json(answer, run, tmp_path: Path) -> None:
    path = tmp_path / "sure.csv"
    path.write_text("p,y\n1,0\n0.5,1\n")
    found = answer("monitor", path, code=1)
    assert found["log_e"] is None and found["alarm"]["time"] == 1
    assert "infinite" in run("monitor", path)[1]
    path.write_text("p,y\n" + "0.999,0\n" * 2000)
    assert "evidence 1e" in run("monitor", path)[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p,y\n0.5,1\n1.5,0\n", "row 2"),
        ("p,y\n0.5,1\nnan,0\n", "row 2"),
        ("p,y\n0.5,1\n0.5,2\n", "row 2"),
        ("p,y\n0.5,1\n0.5,1\n", "single class"),
        ("p,label\n0.5,1\n", "no column y"),
        ("", "empty"),
        ("p,y\n", "no rows"),
        (b"p,y\n0.5,1\n0.\xff5,0\n", "UTF-8"),
    ],
)
def test_bad_input_is_one_line_that_names_the_row_and_writes_nothing(run, tmp_path: Path, text, said) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    code, out, err = run("report", path, *PRICES)
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1 and str(path) in err
    if said != "single class":
        assert run("select", path, "--uar", ".05")[0] == 2
        assert run("monitor", path, "--state", tmp_path / "state.json")[0] == 2
    assert os.listdir(tmp_path) == ["bad.csv"] or said == "single class"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["thresholds", "--wrong", "20"],
        ["thresholds", *PRICES[:-1], "-3"],
        ["thresholds", *PRICES, "--reviewer-error", "2"],
        ["demo", "--tau-act", "1.5"],
        ["demo", "--count", "0"],
        ["demo", "--csv", "no/such/folder/a.csv"],
        ["select", "x.csv"],
        ["select", "x.csv", "--uar", ".05"],
        ["plan", "--uar", "2"],
        ["plan", "--uar", ".05", "--true-uar", ".05"],
        ["monitor", "x.csv", "--delta", "0"],
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(run, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1


def test_another_monitors_state_is_refused(run, demo_csv: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    run("monitor", demo_csv, "--state", state)
    before = state.read_bytes()
    code, _, err = run("monitor", demo_csv, "--state", state, "--delta", "0.01")
    assert code == 2 and "delta 1/20" in err and state.read_bytes() == before
    state.write_text("{}")
    assert run("monitor", demo_csv, "--state", state)[0] == 2


def test_parquet_is_read_as_csv_is(answer, demo_csv: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "demo.parquet"
    pandas.read_csv(demo_csv).to_parquet(path)
    rest = {"source"}
    first, second = (answer("report", place, *PRICES) for place in (demo_csv, path))
    assert {k: v for k, v in first.items() if k not in rest} == {
        k: v for k, v in second.items() if k not in rest
    }
    assert np.isclose(first["cost_per_case"], 1.33875)


@pytest.mark.parametrize("tau", ["0.969", "0.7", "0.1"])
def test_a_live_report_at_the_threshold_was_sent_as_in_a_file(answer, pipe, tmp_path: Path, tau: str) -> None:
    # 0.969 and 0.7 are floats below their decimals.
    path = tmp_path / "tie.csv"
    path.write_text(f"p,y\n{tau},1\n")
    pipe(path.read_bytes())
    live = answer("monitor", "-", "--tau-act", tau)
    assert live == answer("monitor", path, "--tau-act", tau) and live["time"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is empty"),
        (b"0.5,1\n", "no column p"),
        (b"p,y,p\n0.5,1,0.4\n", "2 columns named p"),
        (b"p,y\n0.5,1\nnan,1\n", "line 3: p is nan"),
        (b"p,y\n0.5,1\n0.5,2\n", "line 3: y is 2"),
        (b"p,y\n0.5,1\n0.5\n", "line 3: 1 values"),
        (b"p,y,note\n0.5,1,a\n0.5,1,caf\xe9\n", "line 3: byte 0xe9 is not UTF-8"),
        ("p,y\n0.5,1\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8"),
        (b'p,y\n0.5,1\n"0.5,1\n', "line 3 is not CSV"),
        (b"p,y,note\n0.5,1,a\n0.5,1," + b"x" * 200_000 + b"\n", "line 3 is not CSV"),
    ],
)
def test_a_bad_line_of_a_live_stream_is_named_and_those_before_it_are_kept(
    run, pipe, tmp_path: Path, text: bytes, said: str
) -> None:
    state = tmp_path / "state.json"
    pipe(text)
    code, out, err = run("monitor", "-", "--state", state)
    assert (code, out) == (2, "") and err.startswith("error: standard input") and err.count("\n") == 1
    assert said in err
    if "3" in said:
        assert json.loads(state.read_text())["state"]["time"] == 1


def test_a_live_stream_may_begin_with_a_byte_order_mark_and_hold_blank_lines(answer, pipe) -> None:
    pipe(b"\xef\xbb\xbfp,y\r\n0.5,1\r\n \r\n\r\n0.6,0")
    assert answer("monitor", "-")["time"] == 2


def test_a_file_after_a_live_stream_is_not_counted_unasked(answer, run, pipe, tmp_path: Path) -> None:
    path, state = tmp_path / "log.csv", tmp_path / "state.json"
    path.write_text("p,y\n" + "0.9,1\n" * 20)
    pipe(path.read_bytes())
    answer("monitor", "-", "--state", state)
    before = state.read_bytes()
    code, out, err = run("monitor", path, "--state", state)
    assert (code, out) == (2, "") and "--later" in err and err.count("\n") == 1
    assert state.read_bytes() == before
    assert answer("monitor", path, "--state", state, "--later")["time"] == 40


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('"bad": 100', '"bad": 10'),
        lambda text: text.replace('"time": 400', '"time": -1'),
        lambda text: text.replace('"shift": 0', '"shift": 9'),
        lambda text: text.replace('"rows": 400', '"rows": Infinity'),
        lambda text: text.replace('"peak": ', '"peak": 1'),
        lambda text: text.replace('"money": [', '"money": [1.0,'),
        lambda text: text[: len(text) // 2],
        lambda text: "[" * 100_000,
        lambda text: "[]",
        lambda text: "",
    ],
)
def test_a_damaged_state_is_refused_and_left_alone(run, pipe, demo_csv: Path, tmp_path: Path, damage) -> None:
    state = tmp_path / "state.json"
    run("monitor", demo_csv, "--state", state)
    damaged = damage(state.read_text())
    assert damaged != state.read_text()
    state.write_text(damaged)
    for stream in (demo_csv, "-"):
        pipe(b"p,y\n0.9,1\n")
        code, out, err = run("monitor", stream, "--state", state)
        assert (code, out) == (2, "") and str(state) in err and err.count("\n") == 1
    assert state.read_text() == damaged


@pytest.mark.parametrize("cost", ["1e308", "1e400", "1" + "0" * 101])
@pytest.mark.parametrize("name", ["--wrong", "--ask", "--miss", "--escalate", "--reject-cost"])
def test_a_cost_beyond_floats_is_refused_by_name(run, name: str, cost: str) -> None:
    for options in ([], ["--json"]):
        code, out, err = run("demo", name, cost, *options)
        assert (code, out) == (2, "") and name in err and err.count("\n") == 1


def test_a_groups_name_keeps_to_its_line(run, tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text('p,y,group\n0.5,1,"a\nb"\n0.9,0,"\x1b[31mred"\n0.9,0,' + "g" * 5000 + "\n")
    code, out, _ = run("report", path, *PRICES)
    table = out.split("group  ")[1].split("calibration")[0].rstrip()
    assert code == 0 and len(table.split("\n")) == 4 and "\x1b" not in out
    assert max(map(len, table.split("\n"))) < 140


def test_a_cell_too_long_for_csv_is_told_apart_from_bad_quotes(run, tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("p,y,prompt\n0.5,1," + "x" * 200_000 + "\n0.5,0,a\n")
    code, _, err = run("report", path, *PRICES)
    assert code == 2 and "line 2" in err and "drop that column or give Parquet" in err
