"""Records of a file: three layouts in bounded memory, and a broken line costs itself alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnesses.logs import stream
from harnesses.logs.stream import layout_of, records

ROOT = Path(__file__).resolve().parents[3]
ROWS: list[dict[str, Any]] = [
    {"a": 1, "t": "é\n]}[{"},
    {"b": [1, {"c": '\\"'}]},
    {},
    {"d": None, "long": "x, " * 60},
]


def write(folder: Path, content: str | bytes) -> Path:
    file = folder / "log"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def values(file: Path) -> list[Any]:
    found = list(records(file))
    assert [record.problem for record in found] == [None] * len(found)
    return [record.value for record in found]


LAYOUTS = {
    "lines": "\n".join(map(json.dumps, ROWS)),
    "lines with blanks, Windows ends and a mark": "\ufeff" + "\r\n\r\n".join(map(json.dumps, ROWS)) + "\r\n",
    "array": json.dumps(ROWS),
    "array over lines": "\ufeff \n" + json.dumps(ROWS, indent=2) + "\n",
    "objects over lines": "\n".join(json.dumps(row, indent=1) for row in ROWS),
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 16])
def test_every_layout_gives_the_same_records_however_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, chunk: int
) -> None:
    monkeypatch.setattr(stream, "CHUNK", chunk)
    assert values(write(tmp_path, text)) == ROWS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(rows=st.lists(json_values, max_size=6), indent=st.sampled_from([None, 1]), chunk=st.integers(1, 40))
@example(rows=[0.0], indent=None, chunk=1)
@example(rows=[1e-7, -2.5e30], indent=None, chunk=1)
def test_an_array_is_read_as_json_reads_it(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], indent: int | None, chunk: int
) -> None:
    file = write(tmp_path_factory.mktemp("array"), json.dumps(rows, indent=indent, ensure_ascii=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK", chunk)
        assert values(file) == rows


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (b'{"a": ', "not JSON: Expecting value at character 7"),
        (b"nonsense", "not JSON: Expecting value at character 1"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 8"),
        (b"[" * 100_000, "not JSON that can be read: nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON that can be read: a number is too long"),
        (b'{"a": 1}{"a": 2}', "not JSON: Extra data at character 9"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_broken_line_is_reported_with_its_number_and_the_rest_is_read(
    tmp_path: Path, broken: bytes, problem: str, at: int
) -> None:
    lines = [b'{"n": 0}', b'{"n": 1}']
    lines.insert(at, broken)
    if at == 0 and broken.startswith(b"["):
        lines.insert(0, b'{"n": -1}')  # a file that begins with a bracket is an array
        at = 1
    found = list(records(write(tmp_path, b"\n".join(lines))))
    assert [(r.line, r.problem) for r in found if r.problem] == [(at + 1, problem)]
    assert [r.value for r in found if not r.problem] == [json.loads(x) for x in lines if x != broken]


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LONGEST", 1 << 20)
    monkeypatch.setattr(stream, "CHUNK", 1000)
    file = write(tmp_path, '{"n": 0}\n"' + "x" * 3_000_000 + '"\n{"n": 2}\n')
    assert [(r.line, r.value, r.problem) for r in records(file)] == [
        (1, {"n": 0}, None),
        (2, None, "longer than 1 MiB"),
        (3, {"n": 2}, None),
    ]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('[{"n": 0},\n{"n": oops},\n{"n": 2}]', 2, "Expecting value on line 2"),
        ('[{"n": 0},\n{"n": 1}', 2, "the array does not end"),
        ('[{"n": 0},\n{"n": "x', 2, "Unterminated string"),
        ('[{"n": 0}\n{"n": 1}]', 2, "a comma is missing"),
        ('[{"n": 0}]\nmore', 2, "text after the end of the array"),
        ('{\n"n": 0}\n{\n"n": }', 3, "Expecting value on line 4"),
    ],
)
def test_a_broken_array_or_object_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    *good, last = records(write(tmp_path, text))
    assert [record.value for record in good][0] == {"n": 0}
    assert last.line == line and last.problem is not None and problem in last.problem


def test_a_broken_element_does_not_make_the_rest_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHUNK", 1000)
    read: list[int] = []
    file = write(tmp_path, '[{"n": oops}' + ', {"n": "' + "x" * 500_000 + '"}]')
    found = list(records(file, read.append))
    assert len(found) == 1 and found[0].problem and sum(read) <= 2000


def test_text_that_is_no_utf_8_inside_an_array_is_reported(tmp_path: Path) -> None:
    (found,) = records(write(tmp_path, b'[{"a": "\xff"}]'))
    assert found.problem is not None and "not UTF-8" in found.problem


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_records(tmp_path: Path, content: bytes) -> None:
    file = write(tmp_path, content)
    assert layout_of(file) is None and list(records(file)) == []


@given(content=st.binary(max_size=200))
def test_any_bytes_give_records_or_problems(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    read: list[int] = []
    file = write(tmp_path_factory.mktemp("bytes"), content)
    for record in records(file, read.append):
        assert record.problem is None or "\n" not in record.problem
    assert sum(read) <= len(content)


def long_log(file: Path, layout: str, size: int, record: dict[str, Any]) -> None:
    """At least `size` bytes of the same record, some broken where the layout allows it."""
    text = json.dumps(record)
    block = ("\n" if layout == "lines" else ",\n").join([text] * 50)
    with file.open("w") as out:
        out.write("[" if layout == "array" else "")
        while True:
            out.write(block)
            if out.tell() >= size:
                break
            out.write("\n" if layout == "lines" else ",\n")
        out.write("]" if layout == "array" else "\n")


def peak_memory(*words: str) -> int:
    """Largest resident size in bytes of a command of ours."""
    code = (
        "import resource, sys\nfrom experiments.__main__ import main\nmain(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    unit = 1 if sys.platform == "darwin" else 1024
    return int(done.stderr.split()[-1]) * unit


@pytest.mark.parametrize(("layout", "size"), [("lines", 60 << 20), ("array", 24 << 20)])
def test_a_long_log_is_read_in_bounded_memory(
    tmp_path: Path, small_logs: dict[str, Any], layout: str, size: int
) -> None:
    record = small_logs["tau-bench"]
    record["traj"][0]["content"] = "s" * 20_000
    short, long = tmp_path / "short", tmp_path / "long"
    long_log(short, layout, 1 << 10, record)
    long_log(long, layout, size, record)
    words = ["--json", "--map", "oldest_first:2000"]
    extra = peak_memory("logs", str(long), *words) - peak_memory("logs", str(short), *words)
    assert long.stat().st_size >= size
    assert extra < 8 << 20
