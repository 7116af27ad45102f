"""How figures look and are written: printed size, fonts, colours, reproducible bytes. Imports matplotlib.

A figure is drawn at the width it is printed in, so that its 9 pt text is 9 pt on paper; the page is never
cropped to the content. Colours are Okabe and Ito's, and each comes with a marker and a hatch, so that no
reading rests on colour.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tueplots import bundles

WIDE = 5.5
NARROW = 3.41
WIDTHS = (NARROW, WIDE)
FORMATS = ("pdf", "svg", "png")


class StyleError(ValueError):
    """A width or format that figures are not made in."""


@dataclass(frozen=True)
class Look:
    """Colour, marker and hatch of one series."""

    colour: str
    marker: str
    hatch: str


BLACK = "#000000"
GREY = "#666666"
LOOKS = (
    Look("#0072B2", "o", ""),
    Look("#D55E00", "s", "////"),
    Look("#009E73", "^", "...."),
    Look("#CC79A7", "D", "\\\\\\\\"),
    Look("#E69F00", "v", "xxxx"),
    Look("#56B4E9", "P", "----"),
    Look("#F0E442", "X", "oooo"),
)


def look(index: int) -> Look:
    """The look of the series with this number, from 0; StyleError beyond the last."""
    if not 0 <= index < len(LOOKS):
        raise StyleError(f"series {index}: a figure has at most {len(LOOKS)} series; split it into panels")
    return LOOKS[index]


@contextmanager
def styled(salt: str = "hpomdp") -> Iterator[None]:
    """Matplotlib's settings while drawing and saving; `salt` fixes the ids inside SVG files."""
    settings: dict[str, Any] = dict(bundles.neurips2024(usetex=False))
    settings.update(
        {
            "font.family": "serif",
            "font.serif": ["STIXGeneral"],
            "mathtext.fontset": "stix",
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
            "svg.hashsalt": salt,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.unicode_minus": True,
            "axes.linewidth": 0.6,
            "lines.linewidth": 1.0,
            "lines.markersize": 3.0,
            "hatch.linewidth": 0.4,
            "legend.frameon": False,
            "savefig.bbox": None,
            "figure.constrained_layout.use": True,
            "figure.dpi": 150,
            "savefig.dpi": 300,
        }
    )
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)  # type: ignore[arg-type]
        yield


def blank(width: float, height: float) -> Figure:
    """An empty figure of this printed size in inches; its width must be one of the two columns'."""
    if width not in WIDTHS:
        raise StyleError(f"width is {width} in; figures are {' or '.join(map(str, WIDTHS))} in wide")
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def render(figure: Figure, form: str, provenance: Mapping[str, str]) -> bytes:
    """The figure's file content; equal figures and provenance give equal bytes. Call it inside `styled`.

    `provenance` goes into the file's metadata: title, run, commit, parameters.
    """
    if form not in FORMATS:
        raise StyleError(f"format is {form!r}; figures are written as {', '.join(FORMATS)}")
    target = io.BytesIO()
    figure.savefig(target, format=form, metadata=_metadata(form, provenance))
    return target.getvalue()


def save(figure: Figure, path: Path, provenance: Mapping[str, str]) -> Path:
    """Write the figure; the path's ending chooses the format."""
    content = render(figure, path.suffix.removeprefix("."), provenance)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def provenance_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """What a figure's file says of its origin, from the manifest of the run."""
    commit = manifest.get("commit") or "unknown"
    return {
        "study": str(manifest["study"]),
        "run": str(manifest["run_id"]),
        "commit": commit + (" with changes" if manifest.get("dirty") else ""),
        "parameters": str(manifest["parameters_hash"])[:16],
    }


def _metadata(form: str, provenance: Mapping[str, str]) -> dict[str, Any]:
    title = provenance.get("study", "figure")
    origin = "; ".join(f"{name} {value}" for name, value in provenance.items())
    # A date or a program's version would make two renderings of the same tables differ.
    if form == "pdf":
        return {
            "Title": title,
            "Subject": origin,
            "Creator": "hpomdp",
            "Producer": "matplotlib",
            "CreationDate": None,
        }
    if form == "svg":
        return {"Title": title, "Description": origin, "Creator": "hpomdp", "Date": None}
    return {"Title": title, "Description": origin, "Software": "hpomdp"}
