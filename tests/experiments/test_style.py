"""Figures have their printed size, embed true fonts, and are the same bytes however often they are drawn."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments import style

ROOT = Path(__file__).resolve().parents[2]
ORIGIN = {"study": "coins", "run": "0123456789ab", "commit": "f" * 40, "parameters": "e" * 16}
DRAW = """
import hashlib, sys
sys.path.insert(0, "tests/experiments")
from experiments import style
from test_style import ORIGIN, drawn
for form in style.FORMATS:
    with style.styled("run"):
        print(form, hashlib.sha256(style.render(drawn(), form, ORIGIN)).hexdigest())
"""


def drawn(width: float = style.WIDE) -> Figure:
    """Every kind of mark that the studies use."""
    figure = style.blank(width, 2.0)
    left, right = figure.subplots(1, 2)
    x = np.linspace(0, 1, 7)
    for index in range(3):
        shown = style.look(index)
        left.fill_between(x, x * index, x * index + 0.1, color=shown.colour, alpha=0.3, hatch=shown.hatch)
        left.plot(x, x * index, color=shown.colour, marker=shown.marker, label=f"series {index}")
    left.set_xlabel(r"accuracy $q$")
    left.set_ylabel(r"$V_f$")
    left.legend()
    right.errorbar([1, 2], [0, -1], xerr=[[0.1, 0.2], [0.3, 0.4]], fmt="none")
    return figure


def render(form: str, width: float = style.WIDE) -> bytes:
    with style.styled("run"):
        return style.render(drawn(width), form, ORIGIN)


@cache
def once(form: str) -> bytes:
    """One rendering that several tests compare with."""
    return render(form)


@pytest.mark.parametrize("form", style.FORMATS)
def test_two_renderings_are_the_same_bytes(form: str) -> None:
    assert render(form) == once(form)


def test_another_process_with_another_hash_seed_renders_the_same_bytes() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    found = dict(line.split() for line in done.stdout.splitlines())
    assert found == {form: hashlib.sha256(once(form)).hexdigest() for form in style.FORMATS}


@pytest.mark.parametrize("form", style.FORMATS)
def test_the_file_names_its_run_commit_and_parameters(form: str) -> None:
    content = once(form)
    for name in ("run", "commit", "parameters"):
        assert f"{name} {ORIGIN[name]}".encode() in content
    assert not re.search(rb"CreationDate|<dc:date>", content)


@pytest.mark.parametrize("width", style.WIDTHS)
def test_the_page_is_as_wide_as_printed(width: float) -> None:
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", render("pdf", width))
    assert box is not None
    assert (float(box[1]) / 72, float(box[2]) / 72) == pytest.approx((width, 2.0), abs=1e-6)


def test_pdf_fonts_are_embedded_as_truetype_stix() -> None:
    content = once("pdf")
    assert b"/Subtype /Type3" not in content
    assert b"CIDFontType2" in content and b"STIXGeneral" in content
    assert b"DejaVu" not in content


def test_text_is_as_large_as_the_venue_asks() -> None:
    with style.styled():
        figure = drawn()
        axes = figure.axes[0]
        sizes = {axes.xaxis.label.get_size(), axes.get_xticklabels()[0].get_size()}
        assert sizes == {9.0, 7.0}
        assert not axes.spines["top"].get_visible() and not axes.spines["right"].get_visible()


def test_settings_end_with_the_block() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    render("png")
    assert dict(matplotlib.rcParams) == before


def test_the_users_own_settings_do_not_change_the_bytes() -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "svg.fonttype": "none"}):
        changed = render("svg")
    assert changed == once("svg")


def test_every_series_differs_in_colour_marker_and_hatch() -> None:
    looks = [style.look(index) for index in range(len(style.LOOKS))]
    for part in ("colour", "marker", "hatch"):
        assert len({getattr(item, part) for item in looks}) == len(looks)


def test_unknown_widths_formats_and_series_are_refused() -> None:
    with pytest.raises(style.StyleError, match=r"3\.41 or 5\.5"):
        style.blank(6.0, 2.0)
    with pytest.raises(style.StyleError, match="pdf, svg, png"), style.styled():
        style.render(style.blank(style.WIDE, 2.0), "jpg", ORIGIN)
    with pytest.raises(style.StyleError, match="at most"):
        style.look(len(style.LOOKS))
