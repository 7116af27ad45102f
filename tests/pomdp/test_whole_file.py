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


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a pipe", "link to nowhere in particular"])
def test_what_is_no_ordinary_file_is_refused_and_stays(kind: str, tmp_path: Path) -> None:
    target, other = tmp_path / "a.csv", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    elif kind == "link to a pipe":
        os.mkfifo(other)
        target.symlink_to(other)
    else:
        target.symlink_to(tmp_path / "none" / "a.csv")
    before = {name: os.lstat(tmp_path / name) for name in os.listdir(tmp_path)}
    with pytest.raises(OSError, match="device or pipe|a folder has this name|its folder does not exist"):
        write_whole(target, "new")
    assert {name: os.lstat(tmp_path / name) for name in os.listdir(tmp_path)}.keys() == before.keys()
    assert all(os.lstat(tmp_path / name).st_mode == old.st_mode for name, old in before.items())


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "a.csv").symlink_to("real.csv")
    write_whole(tmp_path / "a.csv", "new")
    assert (tmp_path / "a.csv").is_symlink() and (tmp_path / "real.csv").read_text() == "new"
