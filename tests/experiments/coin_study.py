"""A small study for the runner's tests: shares of heads under three arms, one of which changes nothing.

Every call of `run` appends its key to the file named by the parameter `side`, so that a test can count calls.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments import tables
from experiments.study import Outcome, Skipped, fingerprint

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Does a bias change the share of heads?"
METRIC = "share of heads"
CONTRAST = "biased minus fair"
PREDICTED_SIGN = "+"
SEEDS = 2
BASELINE = {"arm": "fair"}
BIAS = {"fair": 0.5, "idle": 0.5, "biased": 0.8}


@dataclass(frozen=True)
class Parameters:
    """Size of the study, and where and how its cells misbehave."""

    side: str = ""
    flips: int = 20
    items: tuple[int, ...] = (1, 2)
    pause: float = 0.0
    fail: str = ""
    skip: str = ""
    loud: bool = False


PRESETS = {"small": Parameters(), "full": Parameters(flips=2000, items=(1, 2, 3))}
TABLES = (
    tables.Table(
        "coins",
        (
            tables.key("arm", "arm"),
            tables.exact("records", "records"),
            tables.estimate("share", "$p$", error="share_se"),
            tables.interval("all", "range", factor=1.0, slack=0.0),
        ),
        "Shares of heads.",
    ),
)


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Every arm with every item."""
    common = {
        "side": parameters.side,
        "flips": parameters.flips,
        "pause": parameters.pause,
        "fail": parameters.fail,
        "skip": parameters.skip,
    }
    return [{"arm": arm, "item": item, **common} for arm in BIAS for item in parameters.items]


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """Flip the coin of the cell."""
    if cell["side"]:
        note(cell["side"], f"{cell['arm']} {cell['item']} {seed}")
    time.sleep(cell["pause"])
    if cell["arm"] == cell["fail"]:
        raise RuntimeError("the coin rolled\nunder the table")
    if cell["arm"] == cell["skip"]:
        raise Skipped("no such coin; put one into the folder coins")
    draw = random.Random(f"{cell['item']}/{seed}")
    heads = sum(draw.random() < BIAS[cell["arm"]] for _ in range(cell["flips"]))
    row = {"share_one": heads / cell["flips"], "process": os.getpid()}
    return Outcome((row,), fingerprint({"bias": BIAS[cell["arm"]]}))


def note(side: str, line: str) -> None:
    """Append one line in one write, so that lines of two workers never mix."""
    descriptor = os.open(Path(side), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean share per arm."""
    import pandas as pd

    groups = frame.groupby("arm", sort=True)["share_one"]
    return {
        "coins": pd.DataFrame(
            {
                "arm": list(groups.groups),
                "records": groups.count().to_numpy(),
                "share": groups.mean().to_numpy(),
                "share_se": groups.sem().to_numpy(),
                "all_lower": groups.min().to_numpy(),
                "all_upper": groups.max().to_numpy(),
            }
        )
    }


def figure(tables: Mapping[str, pd.DataFrame], width: float) -> Any:
    """Bars per arm."""
    from experiments import style

    drawn = style.blank(width, 2.0)
    axes = drawn.subplots()
    frame = tables["coins"]
    for place, (arm, share) in enumerate(zip(frame["arm"], frame["share"])):
        shown = style.look(place)
        axes.bar([place], [share], color=shown.colour, hatch=shown.hatch, label=arm)
    axes.set_ylabel("share of heads $p$")
    axes.legend()
    return drawn


def headline(tables: Mapping[str, pd.DataFrame]) -> str:
    """The contrast."""
    share = tables["coins"].set_index("arm")["share"]
    return f"heads: {share.to_dict()}"
