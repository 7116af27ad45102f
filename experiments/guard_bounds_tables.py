"""Tables of the study guard_bounds: their columns, how they come from the rows, what they say; imports tables and rate.

Exact numbers have no error. A simulated rate comes with its standard error, which says how far another device's
draws may be, and with 95 % Clopper-Pearson ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments import tables
from harnesses.guard.rate import Rate

if TYPE_CHECKING:
    import pandas as pd

PREDICTED_SIGN = "+"
COUNTED = {"rules": ("broken", "never"), "alarms": ("alarmed",)}
"""Counts of data sets that add up over seeds, per part."""

WHOLE = {
    "sent", "bad", "asked", "asked_disallowed", "escalated", "escalated_disallowed", "held_back", "bin", "count",
    "allowed", "items", "disallowed", "broken", "alarmed", "sends", "holds", "collapsed", "datasets",
}  # fmt: skip
"""Columns of counts, in tables where they are counts."""

_RATE = (
    tables.exact("datasets", "of", digits=9),
    tables.estimate("rate", "rate", error="rate_se"),
    tables.derived("ends", "95 %"),
)
TABLES = (
    tables.Table(
        "guard_demo",
        (
            tables.key("guard", "guard"),
            tables.key("tau_act", r"$\tau_{act}$"),
            tables.exact("sent", "sent"),
            tables.exact("bad", "bad"),
            tables.interval("share", "bad/sent", factor=1.0, digits=3),
            tables.exact("bound", r"$1-\tau_{act}$"),
            tables.exact("asked", "asked"),
            tables.exact("asked_disallowed", "not allowed"),
            tables.exact("escalated", "escalated"),
            tables.exact("escalated_disallowed", "not allowed too"),
            tables.exact("uar", "UAR"),
            tables.exact("held_back", "held back"),
            tables.exact("held_back_rate", "of allowed"),
            tables.exact("total_cost", "cost"),
            tables.exact("cost_per_case", "per case", digits=6),
            tables.exact("verdict", "verdict"),
        ),
        "The 400 items of the demo of M14 \\S 7, 300 allowed and 100 not, to the last count. The bad share comes "
        "with its exact 95 % interval, the verdict on Eq. 5 from one-sided ends.",
    ),
    tables.Table(
        "guard_bins",
        (
            tables.key("guard", "guard"),
            tables.key("bin", "bin"),
            tables.exact("count", "items"),
            tables.exact("allowed", "allowed"),
            tables.exact("said", "mean report"),
            tables.exact("observed", "allowed share"),
            tables.derived("ends", "95 %"),
            tables.exact("tau_esc", r"$\tau_{esc}$"),
            tables.exact("tau_act", r"$\tau_{act}$"),
        ),
        "What the demo's guards say and what is so, in bins of about equally many items.",
    ),
    tables.Table(
        "guard_rules",
        (
            tables.key("rule", "rule"),
            tables.key("items", "items"),
            tables.exact("disallowed", "not allowed"),
            tables.exact("alpha", r"$\alpha$"),
            tables.exact("delta", r"$\delta$"),
            tables.ignore("broken", "broken", digits=9),
            *_RATE,
            tables.exact("exact", "exact"),
            tables.estimate("never_rate", "never acts", error="never_rate_se"),
            tables.estimate("mean", "mean", error="mean_se"),
        ),
        "How often the threshold that a rule chooses breaks its promise in the whole population: UAR at most "
        "$\\alpha$ for the naive, conformal and PAC rule, bad share at most $\\alpha$ for Learn-then-Test. `exact' is "
        "the binomial probability of the same event, `mean' the mean true rate, which the conformal rule promises.",
    ),
    tables.Table(
        "guard_kappa",
        (
            tables.key("kappa", r"$\kappa$"),
            tables.exact("share", "bad/sent"),
            tables.exact("bound", r"$1-\tau_{act}$"),
            tables.exact("holds", "holds"),
            tables.exact("uar", "UAR"),
            tables.exact("sent", "sent"),
            tables.exact("asked", "asked"),
            tables.exact("escalated", "escalated"),
            tables.exact("cost", "cost per case"),
        ),
        "The population of the demo's guard with all doubts divided by $\\kappa$, in closed form.",
    ),
    tables.Table(
        "guard_injection",
        (
            tables.key("rise", "$D$"),
            tables.exact("bound", r"$1-\tau+D$"),
            tables.exact("blind", "same for all"),
            tables.exact("aimed", "not allowed only"),
            tables.exact("worst", "worst law"),
            tables.exact("restored", r"$\tau+D$"),
            tables.exact("blind_restored", "same, restored"),
            tables.exact("uar_aimed", "UAR"),
            tables.exact("uar_restored", "UAR restored"),
            tables.exact("sent_clean", "sent without injection"),
        ),
        "Bad share of what is sent when an injected document raises reports by $D$: those of all calls alike, where "
        "Eq. 5 holds with $1-\\tau+D$, or those of the calls that are not allowed, where the worst law reaches 1. "
        "Acting at $\\tau+D$ restores the promise at the price of what is still sent; beyond $D = 1-\\tau$ only "
        "never acting helps.",
    ),
    tables.Table(
        "guard_reviewer",
        (
            tables.key("e0", "$e_0$"),
            tables.exact("tau_act", r"$\tau_{act}$"),
            tables.exact("tau_esc", r"$\tau_{esc}$"),
            tables.exact("collapsed", "collapsed"),
            tables.exact("asked", "asked"),
            tables.exact("cost", "cost"),
            tables.exact("cost_unaware", "cost, unaware"),
            tables.exact("cost_escalate", "cost of escalating all"),
        ),
        "Thresholds, questions and cost per case where the reviewer approves a call that is not allowed with "
        "probability $e_0$; `unaware' keeps the thresholds for a perfect reviewer.",
    ),
    tables.Table(
        "guard_alarms",
        (
            tables.key("kappa", r"$\kappa$"),
            tables.key("against", "tested promise"),
            tables.key("sends", "sends"),
            tables.exact("delta", r"$\delta$"),
            tables.ignore("alarmed", "alarmed", digits=9),
            *_RATE,
        ),
        "Share of streams in which the monitor has raised its alarm after so many labelled sends. At $\\kappa = 1$ "
        "every alarm is false; at $\\kappa = 4$ the promise $1/32$ still holds, though the reports do not.",
    ),
)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One frame per table; the exact parts are the same under every seed, simulated ones are added up."""
    parts = {name: frame[frame["part"] == name] for name in frame["part"].unique()}
    found = {}
    for table in TABLES:
        name = table.name.removeprefix("guard_")
        part = _pooled(parts[name], name, table) if name in COUNTED else parts[name]
        part = part.drop_duplicates(table.keys).sort_values(table.keys, kind="stable")
        part = part.reindex(columns=table.stored).reset_index(drop=True).infer_objects()
        # Counts that other parts lack came as floats.
        whole = [name for name in part if name in WHOLE and (part[name] % 1 == 0).all()]
        found[table.name] = part.astype(dict.fromkeys(whole, int))
    return found


def _pooled(part: pd.DataFrame, name: str, table: tables.Table) -> pd.DataFrame:
    """Rows of equal keys added up over seeds, with rates, errors and ends of the sums."""
    import pandas as pd

    rows = []
    for _, group in part.groupby(table.keys, sort=False):
        row = group.iloc[0].to_dict()
        row["datasets"] = int(group["datasets"].sum())
        for count in COUNTED[name]:
            row[count] = int(group[count].sum())
        main = Rate.of(row[COUNTED[name][0]], row["datasets"])
        row |= {"rate": main.rate, "rate_se": main.se, "ends_lower": main.lower, "ends_upper": main.upper}
        if name == "rules":
            never = Rate.of(row["never"], row["datasets"])
            row |= {"never_rate": never.rate, "never_rate_se": never.se}
            row["mean"] = float(group["mean"].mean())
            row["mean_se"] = float((group["mean_se"] ** 2).sum() ** 0.5 / len(group))
        rows.append(row)
    return pd.DataFrame(rows)


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """Violations of the rules, where Eq. 5 breaks, the collapse and the delays, with the predicted sign."""
    rules = frames["guard_rules"]
    last = rules[rules["items"] == rules["items"].max()].set_index("rule")["rate"]
    both = rules.pivot(index="items", columns="rule", values="rate")
    above = int((both["naive"] > both["PAC"]).sum())
    kappa, reviewer = frames["guard_kappa"], frames["guard_reviewer"]
    broken = kappa[kappa["holds"] == 0]["kappa"]
    collapse = reviewer[reviewer["collapsed"] == 1]["e0"]
    where = f"breaks from kappa {broken.min():g} on" if len(broken) else "holds for every kappa tried"
    when = f"collapses at e0 = {collapse.min():.5g}" if len(collapse) else "does not collapse"
    told = ", ".join(f"{rule} {rate:.3f}" for rule, rate in last.items())
    return (
        f"The naive rule breaks its promise more often than the PAC rule at {above} of {len(both)} sizes (predicted "
        f"sign {PREDICTED_SIGN}); share of data sets broken at {rules['items'].max()} items: {told}. Eq. 5 {where}, "
        f"and the guard {when}. {delays(frames['guard_alarms'])}"
    )


def delays(alarms: pd.DataFrame) -> str:
    """False alarms, and the sends after which half of the streams of each overconfident guard have alarmed."""
    own = alarms[alarms["against"] == "report"].sort_values("sends")
    last = own["sends"].max()
    end = own[own["sends"] == last].set_index("kappa")["rate"]
    told = []
    for kappa, part in own[own["kappa"] > 1].groupby("kappa"):
        half = part[part["rate"] >= 0.5]["sends"]
        told.append(f"{half.min() if len(half) else f'more than {last}'} at kappa {kappa:g}")
    calm = f"{end[1]:.4f} of calibrated streams" if 1 in end else "streams"
    return (
        f"Within {last} sends the monitor alarms on {calm} (delta {own['delta'].iloc[0]:g}); half of the "
        f"overconfident ones need {', '.join(told)}."
    )
