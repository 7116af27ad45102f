"""`hpomdp guard report --plot`: the figure beside the report, and nothing where the input is bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.__main__ import main

PRICES = ["--wrong", "20", "--ask", "1/2", "--miss", "4", "--escalate", "3"]


@pytest.fixture
def scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / "demo.csv"
    main(["guard", "demo", "--csv", str(path)])
    capsys.readouterr()
    return str(path)


@pytest.mark.parametrize(("name", "magic"), [("a.pdf", b"%PDF"), ("a.svg", b"<?xml"), ("a.png", b"\x89PNG")])
def test_the_figure_is_written_in_the_form_that_its_name_ends_in_and_the_same_each_time(
    tmp_path: Path, scores: str, capsys, name: str, magic: bytes
) -> None:
    target, again = tmp_path / name, tmp_path / f"again-{name}"
    for path in (target, again):
        assert main(["guard", "report", scores, *PRICES, "--json", "--plot", str(path)]) == 0
        assert json.loads(capsys.readouterr().out)["sent"] == 130
    assert target.read_bytes().startswith(magic)
    assert target.read_bytes() == again.read_bytes()


def test_the_report_alone_draws_nothing(tmp_path: Path, scores: str) -> None:
    assert main(["guard", "report", scores, *PRICES]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["demo.csv"]


@pytest.mark.parametrize("target", ["a.gif", "a", "none/a.pdf"])
def test_a_figure_that_cannot_be_written_is_refused_before_the_report(
    tmp_path: Path, scores, capsys, target
) -> None:
    assert main(["guard", "report", scores, *PRICES, "--plot", str(tmp_path / target)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and target in err


def test_bad_scores_draw_nothing(tmp_path: Path, capsys) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("p,y\n2,1\n")
    assert main(["guard", "report", str(path), *PRICES, "--plot", str(tmp_path / "a.pdf")]) == 2
    assert not (tmp_path / "a.pdf").exists()


def test_scores_are_read_once_because_a_pipe_gives_them_once(
    tmp_path: Path, scores: str, capsys, monkeypatch
) -> None:
    text, target = Path(scores).read_bytes(), tmp_path / "a.svg"
    given = iter([text])
    monkeypatch.setattr(Path, "read_bytes", lambda _: next(given, b""))
    assert main(["guard", "report", "a pipe", *PRICES, "--plot", str(target)]) == 0
    assert "sent alone" in capsys.readouterr().out and target.read_text().startswith("<?xml")


def test_where_the_figure_cannot_be_written_no_report_is_printed(tmp_path: Path, scores: str, capsys) -> None:
    target = tmp_path / "folder.png"
    target.mkdir()
    assert main(["guard", "report", scores, *PRICES, "--plot", str(target)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and str(target) in err
