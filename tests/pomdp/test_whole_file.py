"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pomdp import whole_file
from pomdp.whole_file import write_whole


def test_the_text_is_there_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    write_whole(target, "old")
    write_whole(target, "p,y\n0.5,1\né\n")
    assert target.read_bytes() == "p,y\n0.5,1\né\n".encode()
    assert os.listdir(tmp_path) == ["a.csv"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.csv"
    write_whole(target, "old")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(whole_file.os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_whole(target, "new")
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["a.csv"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    target = tmp_path / "none" / "a.csv"
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(target, "new")
    assert caught.value.filename == str(target) and not target.parent.exists()
