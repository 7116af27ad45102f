"""The cache folder: where it lies, and what happens where it cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from pomdp.cache_folder import cache_folder


def test_it_follows_xdg_cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "deep" / "cache"))
    assert cache_folder("numba") == tmp_path / "deep" / "cache" / "hpomdp" / "numba"
    assert (tmp_path / "deep" / "cache" / "hpomdp" / "numba").is_dir()


@pytest.mark.parametrize("named", [None, "", "relative/path"])
def test_without_a_usable_setting_it_lies_in_the_home(
    named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME") if named is None else monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert cache_folder("jax") == tmp_path / ".cache" / "hpomdp" / "jax"


@pytest.fixture
def occupied_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache home in which no folder can be made, also not by root: it is a file."""
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def test_a_home_that_cannot_be_written_is_replaced_by_a_private_temporary_folder(occupied_home: Path) -> None:
    before = os.umask(0)
    try:
        folder = cache_folder("numba")
    finally:
        os.umask(before)
    assert folder is not None and folder.is_relative_to(occupied_home / "temporary")
    assert folder.parent.stat().st_mode & 0o077 == 0


def test_a_folder_of_another_user_is_not_taken(occupied_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert cache_folder("numba") is None


def test_where_nothing_can_be_written_there_is_none(
    occupied_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(occupied_home / "file"))
    assert cache_folder("numba") is None
