"""Study: what a guard's probabilities promise, how often rules keep it, and what breaks it; imports harnesses.guard.

Source: M14 §7, §8 (Eq. 4, Eq. 5, Eq. 7, the demo and its costs). The population behind the demo has a closed form,
so that a violation is counted against the truth and not against a second sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from scipy import stats

from experiments.guard_bounds_tables import PREDICTED_SIGN, TABLES, analyse, headline
from experiments.study import Outcome, StudyError
from harnesses.guard.costs import Reviewer
from harnesses.guard.demo import COSTS, COUNT, DOUBT, KAPPA, ClosedForm, demo_items
from harnesses.guard.injected import lowered, restored_threshold
from harnesses.guard.region import Thresholds
from harnesses.guard.reliability import equal_mass
from harnesses.guard.report import counted
from harnesses.guard.reviewer import collapse_error
from harnesses.guard.tally import Tally
from harnesses.guard.thresholds import thresholds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = (
    "What does a guard's probability promise about what is sent alone, how often does a rule that chooses the "
    "threshold from data keep the promise, and what do miscalibration, injection and a fallible reviewer do to it?"
)
METRIC = "share of data sets on which the true rate at the chosen threshold exceeds alpha"
CONTRAST = "violation rate of the naive rule minus that of the PAC rule, at equal numbers of labelled items"
SEEDS = 1
BASELINE = None

__all__ = ["PREDICTED_SIGN", "TABLES", "analyse", "headline"]

GUARDS = {"calibrated": 1, "overconfident": KAPPA}
RULES = {"naive": "naive", "conformal": "conformal", "pac": "PAC"}
LTT = {"fallback": "LTT", "fixed-sequence": "LTT in sequence"}
CUT = thresholds(COSTS)
"""31/32 and 3/8: M14 §7's guard."""


@dataclass(frozen=True)
class Parameters:
    """Data sets a cell, labelled items of the rules, doubts' divisors, and the grids of the exact curves.

    `items` are multiples of 80, of which 19 are not allowed on average. `horizon` labelled sends per stream.
    """

    datasets: int = 100_000
    items: tuple[int, ...] = (80, 160, 240, 400, 560)
    methods: tuple[str, ...] = ("fallback",)
    alpha: str = "1/20"
    delta: str = "1/10"
    kappas: tuple[float, ...] = tuple(1 + 0.25 * step for step in range(37))
    points: int = 33
    streams: tuple[tuple[int, str], ...] = (
        (1, "report"), (2, "report"), (4, "report"), (8, "report"), (4, "1/32"), (8, "1/32"),
    )  # fmt: skip
    horizon: int = 400
    bins: int = 10

    def __post_init__(self) -> None:
        """Refuse sizes without a whole number of items that are not allowed, and curves without both ends."""
        if any(size % 80 or size < 80 for size in self.items):
            raise StudyError(f"items are {self.items}; give multiples of 80, such as 80 240 400")
        if self.points < 3 or self.datasets < 1:
            raise StudyError(
                f"points {self.points}, datasets {self.datasets}; give at least 3 points and 1 data set"
            )
        if self.horizon < 2 or len(self.streams) != len(set(self.streams)):
            raise StudyError(
                f"horizon is {self.horizon}; give 2 or more, and each stream once, such as (4, report)"
            )


PRESETS = {
    "small": Parameters(),
    "full": Parameters(
        datasets=1_000_000,
        items=(80, 160, 240, 400, 560, 800, 1200, 1600),
        methods=("fallback", "fixed-sequence"),
        points=97,
        streams=(
            (1, "report"),
            (2, "report"),
            (4, "report"),
            (8, "report"),
            (1, "1/32"),
            (4, "1/32"),
            (8, "1/32"),
        ),
        horizon=1000,
    ),
}


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """The simulated cells, the dearest first, then the exact ones."""
    common = {"datasets": parameters.datasets}
    rates = {"alpha": parameters.alpha, "delta": parameters.delta, **common}
    found: list[dict[str, Any]] = []
    for items in sorted(parameters.items, reverse=True):
        found += [
            {"part": "rules", "family": "chain", "method": method, "items": items, **rates}
            for method in parameters.methods
        ]
    found += [
        {
            "part": "alarms", "kappa": kappa, "against": against, "delta": "1/20",
            "horizon": parameters.horizon, **common,
        }
        for kappa, against in parameters.streams
    ]  # fmt: skip
    found += [{"part": "rules", "family": "order", "items": items, **rates} for items in parameters.items]
    for guard in GUARDS:
        found += [{"part": "demo", "guard": guard, "tau_act": tau} for tau in ("0.969", "31/32")]
        found.append({"part": "bins", "guard": guard, "bins": parameters.bins})
    found.append({"part": "kappa", "kappas": list(parameters.kappas)})
    found += [{"part": part, "points": parameters.points} for part in ("injection", "reviewer")]
    return found


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """The rows of one cell; `seed` matters to the simulated parts alone."""
    simulated: dict[str, Callable[[Mapping[str, Any], int], list[dict[str, Any]]]] = {
        "order": _order_rows, "chain": _chain_rows, "alarms": _alarm_rows,
    }  # fmt: skip
    exact: dict[str, Callable[[Mapping[str, Any]], list[dict[str, Any]]]] = {
        "demo": _demo_rows, "bins": _bin_rows, "kappa": _kappa_rows,
        "injection": _injection_rows, "reviewer": _reviewer_rows,
    }  # fmt: skip
    name = cell.get("family", cell["part"])
    rows = simulated[name](cell, seed or 0) if name in simulated else exact[name](cell)
    return Outcome(tuple(rows))


def _demo_rows(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The demo of M14 §7 under one threshold, counted."""
    scores = demo_items(kappa=GUARDS[cell["guard"]])
    found = counted(scores, Thresholds(cell["tau_act"], CUT.tau_esc), COSTS, 0.95)
    row = {name: getattr(found, name) for name in ("sent", "bad", "asked", "asked_disallowed")}
    return [
        {
            **row,
            "escalated": found.escalated,
            "escalated_disallowed": found.escalated_disallowed,
            "share_lower": found.share.lower,
            "share_upper": found.share.upper,
            "bound": float(found.bound or 0),
            "uar": found.uar.rate,
            "held_back": found.held_back.numerator,
            "held_back_rate": found.held_back.rate,
            "total_cost": float(found.cost_exact * COUNT),
            "cost_per_case": float(found.cost_exact),
            "verdict": found.verdict,
        }
    ]


def _bin_rows(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Reliability of one of the demo's guards, in bins of equal mass."""
    scores = demo_items(kappa=GUARDS[cell["guard"]])
    return [
        {
            "bin": place,
            "count": row.count,
            "allowed": row.allowed.numerator,
            "said": row.mean_report,
            "observed": row.allowed.rate,
            "ends_lower": row.allowed.lower,
            "ends_upper": row.allowed.upper,
            "tau_esc": float(CUT.tau_esc),
            "tau_act": float(CUT.tau_act),
        }
        for place, row in enumerate(equal_mass(Tally.of(scores.p, scores.y), cell["bins"]))
    ]


def _order_rows(cell: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """The three rules for UAR, on data sets with as many disallowed items as there are on average."""
    from harnesses.guard.coverage import allowances, order_violations

    disallowed = disallowed_of(cell["items"])
    alpha = Fraction(cell["alpha"])
    passing = allowances(disallowed, alpha, cell["delta"])
    found = order_violations(passing, disallowed, float(alpha), KAPPA, cell["datasets"], seed)
    return [
        {
            **_violation(cell, RULES[rule], found[rule]),
            # More than k of the disallowed items lie below the UAR's alpha-quantile, or the rule fails.
            "exact": float(stats.binom.cdf(k, disallowed, float(alpha))) if k >= 0 else 0.0,
        }
        for rule, k in passing.items()
    ]


def _chain_rows(cell: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """Learn-then-Test for the share of the overconfident guard, whose promise needs data."""
    from harnesses.guard.coverage import Chain, chain_violations

    chain = Chain(cell["alpha"], cell["delta"], method=cell["method"])
    found = chain_violations(chain, cell["items"], KAPPA, cell["datasets"], seed)
    return [{**_violation(cell, LTT[cell["method"]], found), "exact": None}]


def _violation(cell: Mapping[str, Any], rule: str, found: Any) -> dict[str, Any]:
    return {
        "rule": rule,
        "disallowed": disallowed_of(cell["items"]),
        "alpha": float(Fraction(cell["alpha"])),
        "delta": float(Fraction(cell["delta"])),
        "datasets": found.broken.denominator,
        "broken": found.broken.numerator,
        "never": found.never.numerator,
        "mean": found.mean,
        "mean_se": found.se,
    }


def disallowed_of(items: int) -> int:
    """Disallowed items among so many, on average."""
    return round(items * ClosedForm().pi0)


def _alarm_rows(cell: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """Share of streams alarmed by each of a few times, evenly spaced on a logarithmic scale."""
    import numpy as np

    from harnesses.guard.coverage import alarm_times

    times = alarm_times(
        cell["kappa"], CUT.tau_act, cell["delta"], cell["horizon"], cell["against"], cell["datasets"], seed
    )
    shown = np.unique(np.round(np.geomspace(2, cell["horizon"], 41)).astype(int))
    return [
        {
            "sends": int(time),
            "delta": float(Fraction(cell["delta"])),
            "alarmed": int(((times > 0) & (times <= time)).sum()),
        }
        for time in shown
    ]


def _kappa_rows(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Share, UAR and cost of the population against the divisor of all doubts."""
    bound = float(1 - CUT.tau_act)
    rows = []
    for kappa in cell["kappas"]:
        form = ClosedForm(kappa)
        # Up to c/kappa = 1 - tau_act the share is kappa (1 - tau_act) / 4, without rounding at kappa 4.
        share = kappa * bound / 4 if kappa * bound <= DOUBT else form.pi0
        rows.append(
            {
                "kappa": kappa, "share": share, "bound": bound, "holds": int(share <= bound),
                "uar": form.uar(CUT.tau_act), "sent": form.sent(CUT.tau_act), "asked": form.asked(CUT),
                "escalated": form.escalated(CUT), "cost": form.cost(CUT),
            }
        )  # fmt: skip
    return rows


def _injection_rows(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    """T7 on the calibrated demo: reports raised by D, of all calls or of those that are not allowed."""
    form, tau, last = ClosedForm(), CUT.tau_act, cell["points"] - 1
    rows = []
    for place in range(cell["points"]):
        rise = 2 * (1 - tau) * Fraction(place, last)
        low, high = lowered(tau, rise), restored_threshold(tau, rise)
        bad = form.pi0 * form.uar(low)
        good = form.sent(tau) - form.pi0 * form.uar(tau)
        rows.append(
            {
                "rise": float(rise),
                "bound": float(1 - tau + rise),
                "blind": form.share(low),
                "aimed": bad / (bad + good),
                # All reports at tau - D, and those of the disallowed alone raised: only these are sent.
                "worst": 1.0 if rise else float(1 - tau),
                "restored": None if high is None else float(high),
                "blind_restored": None if high is None else form.share(tau),
                "uar_aimed": form.uar(low),
                "uar_restored": 0.0 if high is None else form.uar(tau),
                "sent_clean": form.sent(high),
            }
        )
    return rows


def _reviewer_rows(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    """T5 on the calibrated demo: e0 from 0 to 1, the point of collapse included."""
    form, last = ClosedForm(), cell["points"] - 1
    errors = {Fraction(place, last) for place in range(cell["points"])} | {collapse_error(COSTS)}
    rows = []
    for e0 in sorted(errors):
        judge = Reviewer(e0)
        cut = thresholds(COSTS, judge)
        rows.append(
            {
                "e0": float(e0),
                "tau_act": float(cut.tau_act),
                "tau_esc": float(cut.tau_esc),
                "collapsed": int(cut.collapsed),
                "asked": form.asked(cut),
                "cost": form.cost(cut, COSTS, judge),
                "cost_unaware": form.cost(CUT, COSTS, judge),
                "cost_escalate": float(COSTS.escalate),
            }
        )
    return rows


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Reliability, violations, kappa; injection, reviewer, detection delay."""
    from experiments.guard_bounds_figure import draw

    return draw(frames, width)
