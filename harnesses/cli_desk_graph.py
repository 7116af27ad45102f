"""The verb `graph` of `desk`: the compiled graph as mermaid text, as DOT, or as an SVG picture drawn here.

Nodes and edges are read from the compiled graph; where a node stands in the picture is this file's choice.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harnesses.cli_desk_options import plainly
from harnesses.cli_desk_show import DONE

START, END = "__start__", "__end__"


class Edge(NamedTuple):
    """An edge; `label` is the branch that it stands for, empty for most. Conditional ones are dashed."""

    source: str
    target: str
    label: str
    conditional: bool


class Point(NamedTuple):
    """A place in the picture, in units of a column and a row."""

    x: float
    y: float


PLACES: Mapping[str, Point] = {
    START: Point(0, 1), "router": Point(1, 1), "ask_user": Point(1, 0), "agent": Point(2, 1), "verify": Point(3, 0),
    "tools": Point(3, 1), "guard": Point(4, 1), "human_review": Point(4.5, 2), "send": Point(5, 1),
    "escalate": Point(3, 2),
}  # fmt: skip
"""As in M14's Figure 1, from left to right."""
ENDS: Mapping[str, Point] = {
    "ask_user": Point(0, 0), "agent": Point(2, 0), "verify": Point(4, 0), "escalate": Point(2, 2),
}  # fmt: skip
"""The end is drawn beside each node that leads to it, so that no line crosses the picture."""
BENDS: Mapping[tuple[str, str], Point] = {
    ("tools", "agent"): Point(2.5, 1.42),
    ("send", "agent"): Point(3.5, 0.1),
    ("human_review", "agent"): Point(2.6, 3.3),
}
"""Where an edge is pulled to, so that it passes beside the nodes on its way."""

COLUMN, ROW, MARGIN = 150.0, 110.0, 70.0
WIDE, HIGH, DOT = 104.0, 34.0, 8.0
"""Of a box, and the radius of a start or end; in pixels as the rest."""


def add_graph(verbs: Any) -> None:
    """`graph`."""
    parser = verbs.add_parser(
        "graph",
        help="draw the compiled graph",
        description="Prints the compiled graph as mermaid text. --out FILE writes .mmd (mermaid), .dot or .svg, each "
        "made here without another program.",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="a file that ends in .mmd, .dot or .svg")
    parser.add_argument("--verify", action="store_true", help="with the node that checks answers")
    parser.set_defaults(handler=draw)


def draw(args: argparse.Namespace) -> int:
    """Print or write."""
    with plainly(args):
        from harnesses.cli_desk_open import reading
        from harnesses.desk.database import DeskError

        kind = ".mmd" if args.out is None else args.out.suffix.lower()
        if kind not in FORMATS:
            raise DeskError(f"{args.out} is none of {', '.join(FORMATS)}; name a file such as desk.svg")
        text = FORMATS[kind](reading(verify=args.verify).graph.get_graph())
        if args.out is None:
            print(text, end="")
        else:
            from pomdp.whole_file import write_whole

            write_whole(args.out, text)
        return DONE


def edges(graph: Any) -> list[Edge]:
    """The edges of a compiled graph."""
    return [Edge(e.source, e.target, str(e.data or ""), bool(e.conditional)) for e in graph.edges]


def mermaid(graph: Any) -> str:
    """The graph in mermaid's language."""
    return graph.draw_mermaid()


def dot(graph: Any) -> str:
    """The graph in the language of graphviz."""
    lines = ["digraph desk {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for name in graph.nodes:
        shape = ' [shape=circle, label=""]' if name in (START, END) else ""
        lines.append(f'  "{name}"{shape};')
    for edge in edges(graph):
        marks = [
            *(["style=dashed"] if edge.conditional else []),
            *([f'label="{edge.label}"'] if edge.label else []),
        ]
        lines.append(
            f'  "{edge.source}" -> "{edge.target}"' + (f" [{', '.join(marks)}]" if marks else "") + ";"
        )
    return "\n".join([*lines, "}", ""])


def svg(graph: Any) -> str:
    """The graph as a picture. DeskError for a node that has no place in it."""
    from harnesses.desk.database import DeskError

    missing = [name for name in graph.nodes if name not in PLACES and name != END]
    if missing:
        raise DeskError(f"no place in the picture for {', '.join(missing)}; write a .mmd or .dot file")
    places = [*PLACES.values(), *ENDS.values()]
    width = COLUMN * max(p.x for p in places) + 2 * MARGIN
    height = ROW * max(p.y for p in places) + 2 * MARGIN
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        "<title>The desk agent as a graph: solid edges are fixed, dashed ones conditional</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f"<defs>{_TIP}</defs>",
    ]
    found = edges(graph)
    parts += [_line(edge, found) for edge in found]
    parts += [_box(name) for name in graph.nodes if name not in (START, END)]
    parts += [_dot(PLACES[START], "white")]
    parts += [_dot(ENDS[source], "#333") for source in sorted({e.source for e in found if e.target == END})]
    return "\n".join([*parts, "</svg>", ""])


FORMATS: Mapping[str, Callable[[Any], str]] = {".mmd": mermaid, ".dot": dot, ".svg": svg}
"""By the ending of the file."""


_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#333"/></marker>'
)


def _at(place: Point) -> Point:
    return Point(MARGIN + COLUMN * place.x, MARGIN + ROW * place.y)


def _line(edge: Edge, found: list[Edge]) -> str:
    """An edge from border to border, with its label; two edges between the same nodes share a line and its labels."""
    start, end = (
        _at(PLACES[edge.source]),
        _at(ENDS[edge.source] if edge.target == END else PLACES[edge.target]),
    )
    bend = BENDS.get((edge.source, edge.target))
    middle = Point((start.x + end.x) / 2, (start.y + end.y) / 2) if bend is None else _at(bend)
    first = _border(start, middle, edge.source == START)
    last = _border(end, middle, edge.target == END)
    style = ' stroke-dasharray="5 4"' if edge.conditional else ""
    path = (
        f'<path d="M{first.x:.1f} {first.y:.1f}Q{middle.x:.1f} {middle.y:.1f} {last.x:.1f} {last.y:.1f}" '
        f'fill="none" stroke="#333"{style} marker-end="url(#tip)"/>'
    )
    if not edge.label:
        return path
    shared = [e.label for e in found if (e.source, e.target) == (edge.source, edge.target)]
    return path + f'<text x="{middle.x + 6:.1f}" y="{middle.y:.1f}" fill="#555">{", ".join(shared)}</text>'


def _border(inside: Point, towards: Point, round: bool) -> Point:
    """Where the line from the middle of a box, or of a dot, leaves it."""
    dx, dy = towards.x - inside.x, towards.y - inside.y
    if round:
        share = DOT / math.hypot(dx, dy)
    else:
        share = min(WIDE / 2 / abs(dx) if dx else math.inf, HIGH / 2 / abs(dy) if dy else math.inf)
    return Point(inside.x + share * dx, inside.y + share * dy)


def _box(name: str) -> str:
    x, y = _at(PLACES[name])
    return (
        f'<rect x="{x - WIDE / 2:.1f}" y="{y - HIGH / 2:.1f}" width="{WIDE:g}" height="{HIGH:g}" rx="7" '
        f'fill="#eef2fb" stroke="#333"/><text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle">{name}</text>'
    )


def _dot(place: Point, fill: str) -> str:
    x, y = _at(place)
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT:g}" fill="{fill}" stroke="#333"/>'
