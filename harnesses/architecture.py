"""The architecture decision and its memo: five axes, the tree, five fields; imports the memo's parts and spec.

Axis 2 is computed where a task is given and asked where not; all else is asked, and the task's numbers stand beside the
answers as evidence. Source: M1 §1.8. Its answers are documented in `harnesses.memo_answers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harnesses.agency import Agency, agency
from harnesses.decision_tree import Decision, Step, TreeAnswers, decide, turns
from harnesses.framework import FrameworkView, framework_view
from harnesses.memo_answers import Answer, Answers, parse_answers
from harnesses.spec import Spec
from pomdp.interval import Interval
from pomdp.model import POMDP

VERIFIERS = {
    "deterministic": "a deterministic verifier",
    "judged": "a judge that can err",
    "none": "no verifier",
}
ANSWER_OF = ("sequence", "failure", "subtasks", "variance")


@dataclass(frozen=True)
class Axis:
    """One property of the task distribution: its value, a sentence of justification, and computed evidence.

    `points_to` is what the value speaks for; `evidence` is None where nothing was computed.
    """

    number: int
    name: str
    value: str
    justification: str
    points_to: str
    evidence: Mapping[str, Any] | None

    def json(self) -> dict[str, Any]:
        """For --json."""
        return {"axis": self.number} | {
            key: getattr(self, key) for key in ("name", "value", "justification", "points_to", "evidence")
        }


@dataclass(frozen=True)
class Memo:
    """The five fields of M1 §1.8.4, and the framework view beside them.

    `reasons` has one sentence for each step of the decision's path.
    """

    title: str
    task_distribution: str
    axes: tuple[Axis, ...]
    decision: Decision
    reasons: tuple[str, ...]
    what_would_change: tuple[str, ...]
    verification: str
    verifier: Mapping[str, Any]
    framework: FrameworkView
    agency: Agency | None

    def json(self) -> dict[str, Any]:
        """For --json."""
        decision = self.decision
        return {
            "title": self.title,
            "task_distribution": self.task_distribution,
            "axes": [axis.json() for axis in self.axes],
            "architecture": decision.architecture,
            "form": decision.form,
            "dominant": decision.dominant,
            "path": [
                {
                    "number": step.number,
                    "question": step.question,
                    "answer": step.answer,
                    "evidence": reason,
                    "axis": step.axis,
                }
                for step, reason in zip(decision.path, self.reasons, strict=True)
            ],
            "what_would_change": list(self.what_would_change),
            "verification_plan": {**self.verifier, "sentence": self.verification},
            "framework": self.framework.json(),
        }

    def markdown(self) -> str:
        """One page for a reader."""
        decision = self.decision
        lines = [f"# Decision memo: {self.title}", "", "## 1. Task distribution", "", self.task_distribution]
        lines += ["", "## 2. Axes", ""]
        for axis in self.axes:
            lines.append(f"- **Axis {axis.number}, {axis.name}: {axis.value}.** {axis.justification}")
            lines += [f"  - {text}" for text in _evidence_lines(axis.evidence)]
            lines.append(f"  - Speaks for {axis.points_to}.")
        lines += ["", f"## 3. Architecture: {decision.architecture}", "", f"{_upper(decision.form)}.", ""]
        for step, reason in zip(decision.path, self.reasons, strict=True):
            lines.append(f"{step.number}. {step.question} **{_upper(step.answer)}.** {reason}")
        lines += ["", f"{decision.dominant}, dominates.", "", "## 4. What would change the decision", ""]
        lines += [f"- {text}" for text in self.what_would_change]
        lines += ["", "## 5. Verification plan", "", self.verification]
        lines += ["", f"## Framework or hand-written loop: {self.framework.choice}", ""]
        lines += [f"{_upper(self.framework.conclusion)}.", ""]
        for number, view in enumerate(self.framework.views, 1):
            lines.append(f"{number}. {view.question} **{_upper(view.answer)}**: {view.implies}.")
        return "\n".join(lines)


def write_memo(
    title: str,
    document: Mapping[str, Any],
    spec: Spec | None,
    *,
    gap: float = 1e-6,
    time_limit: float = 20.0,
) -> Memo:
    """The memo of a spec's [memo] table; `spec` is None where the document has no task.

    Values are those of M_0, the task behind the harness's tools, control and loop. Raises ModelError for missing or
    wrong answers before anything is computed.
    """
    answers = parse_answers(document.get("memo", {}), with_task=spec is not None)
    inner = found = None
    if spec is not None:
        inner = spec.harness.inner(spec.task)
        found = agency(
            inner,
            spec.criterion,
            branch_on=answers.branch_on,
            price=answers.price_per_step,
            tolerance=answers.tolerance,
            gap=gap,
            time_limit=time_limit,
        )
    tree = tree_answers(answers, found)
    decision = decide(tree)
    return Memo(
        title=title,
        task_distribution=answers.tasks,
        axes=_axes(answers, tree, found, inner, document.get("task")),
        decision=decision,
        reasons=tuple(_reason(step, answers, found) for step in decision.path),
        what_would_change=tuple(_changes(answers, tree, found, spec)),
        verification=_verification(answers["verifier"], tree.costly),
        verifier={"kind": answers["verifier"].value, "name": None, "reliability": None}
        | dict(answers["verifier"].more),
        framework=framework_view(
            drawn=tree.known,
            persistent=answers["persistence"].value == "yes",
            costly=tree.costly,
            betting=answers["stronger_models"].value == "yes",
        ),
        agency=found,
    )


def tree_answers(answers: Answers, found: Agency | None) -> TreeAnswers:
    """Yes or no to the tree's questions; the first from the computed values where there are any."""
    subtasks = answers["subtasks"]
    return TreeAnswers(
        known=found.known if found else answers["sequence"].value == "yes",
        costly=answers["failure"].value == "high",
        divided=subtasks.value == "distinct" and subtasks.more["coordination"] == "yes",
        alike=answers["variance"].value == "low",
    )


def _axes(
    answers: Answers, tree: TreeAnswers, found: Agency | None, inner: POMDP | None, task: Any
) -> tuple[Axis, ...]:
    """The five axes. Source: M1 §1.8.1."""
    tools, verifier, failure, variance = (answers[k] for k in ("tools", "verifier", "failure", "variance"))
    actions = len(inner.actions) if inner else None
    count = tools.more.get("count", actions)
    plural = "tool" if count == 1 else "tools"
    used = {"actions": actions, "used_by_closed_loop": found.used_actions} if found else None
    order = "in a fixed order" if tools.value == "fixed" else "in an order that varies"
    worst = {"worst_step": float(inner.R.min()), "best_step": float(inner.R.max())} if inner else None
    irreversible = failure.more.get("irreversible", ())
    costly = (
        f"high, irreversible: {', '.join(irreversible)}" if tree.costly and irreversible else failure.value
    )
    types = variance.more.get("types", ())
    mixed = {"tasks": [entry["task"] for entry in task]} if isinstance(task, list) else None
    second = {True: "not needed for the next step", False: "needed for the next step", None: "undecided"}
    sentence = answers["sequence"].why if found is None else _computed(answers, found)
    return (
        Axis(1, "tool count and distinctness", f"{count} {plural} {order}", tools.why,
             "a workflow" if tools.value == "fixed" else "an agent", used),
        Axis(2, "observability of intermediate state", second[tree.known], sentence,
             {True: "a workflow", False: "an agent", None: "neither yet"}[tree.known], found.json() if found else None),
        Axis(3, "verifiability of outcomes", VERIFIERS[verifier.value], verifier.why,
             "autonomy" if verifier.value == "deterministic" else "human oversight, whatever the architecture", None),
        Axis(4, "cost of failure", costly, failure.why,
             "human gates, whatever feedback is worth" if tree.costly else "no gates", worst),
        Axis(5, "variance in task structure",
             f"{variance.value}, of {len(types)} types: {', '.join(types)}" if types else variance.value,
             variance.why, "a fixed pipeline, or a router" if tree.alike else "an agent", mixed),
    )  # fmt: skip


def _computed(answers: Answers, found: Agency) -> str:
    """The computed sentence of Axis 2, and whether a stated answer contradicts it."""
    sentence = _upper(found.sentence())
    stated = answers.sequence
    if stated is None:
        return sentence
    if found.known is None:
        return f"{sentence} Stated was {stated.value}: {stated.why}"
    agrees = (stated.value == "yes") == found.known
    relation = "agrees" if agrees else "disagrees, and the computed answer counts"
    return f"{sentence} The stated answer, {stated.value}, {relation}: {stated.why}"


def _reason(step: Step, answers: Answers, found: Agency | None) -> str:
    """The evidence for one answer on the path."""
    if step.number == 1 and found is not None:
        return _upper(found.sentence())
    answer = answers[ANSWER_OF[step.number - 1]]
    if step.number == 3 and answer.value == "distinct" and step.answer == "no":
        return f"{answer.why} But coordinating them is not worth its cost."
    return answer.why


def _changes(answers: Answers, tree: TreeAnswers, found: Agency | None, spec: Spec | None) -> list[str]:
    """Field 4, generated from the tree: numbers that cross, answers that turn, then what the author added."""
    changes = [] if found is None else _crossings(found, tree)
    changes += [turn.text() for turn in turns(tree) if not (turn.number == 1 and found)]
    if answers["verifier"].value != "deterministic":
        changes.append(
            "A deterministic verifier would allow more autonomy; it would not change the architecture."
        )
    for part in spec.harness.control if spec else ():
        if part.name == "stall":
            changes.append(
                f"Control ends repeated calls ({part.text}): if traces show ended runs that would have recovered, warn "
                "again before ending; if warned runs never recover, end sooner."
            )
    return changes + list(answers.revise)


def _crossings(found: Agency, tree: TreeAnswers) -> list[str]:
    """Where the value of feedback and the cost of agency cross, and what follows on the other side."""
    name, value, cost = found.beyond_name, found.beyond, found.cost
    now, other = decide(tree), decide(tree.turned(1)) if tree.known is not None else None
    if other is None:
        return [f"{_upper(found.what_decides())}: {name} in {value}, cost {cost.middle:.6g}."]
    at = f"{name} in {value} crosses the cost of agency {cost.middle:.6g}"
    side = "above" if tree.known else "below"
    changes = [f"If {at}, ending {side} it, the decision moves from {now.architecture} to {other.form}."]
    price = found.deciding_price
    if price is not None:
        changes.append(
            f"At {found.steps:.6g} expected steps the two are equal at a price per step in {price}; "
            f"now {found.price:.6g}."
        )
    elif tree.known is False:
        changes.append(f"A stated tolerance of {value.upper:.6g} or more would answer question 1 with yes.")
    elif value.lower > 0:
        changes.append(f"A stated tolerance below {value.lower:.6g} would answer question 1 with no.")
    if found.branch_on:
        changes.append(
            f"The drawn branches count on telling apart {', '.join(found.branch_on)}: without them feedback is worth "
            f"V_f in {found.value_of_feedback}."
        )
    elif tree.known is False:
        changes.append(
            "Branches that an engineer can draw (branch_on) would be compared instead of a plan without any."
        )
    return changes


def _verification(verifier: Answer, costly: bool) -> str:
    """Field 5: the verifier and how far it is to be trusted."""
    name, reliability = verifier.more.get("name"), verifier.more.get("reliability")
    if verifier.value == "none":
        return "Nothing checks outcomes: a person reviews every one before it has effect."
    what = f"{_upper(name)}, {VERIFIERS[verifier.value]}" if name else _upper(VERIFIERS[verifier.value])
    trust = (
        f"expected to judge {reliability:.4g} of the outcomes rightly"
        if reliability is not None
        else "its reliability is not known: measure it against a sample judged by people before release"
    )
    if costly:
        after = "a person still reviews every irreversible step before it is taken"
    elif verifier.value == "deterministic":
        after = "outcomes that pass may then be released without review"
    else:
        after = "a person reviews what it passes, at least a sample"
    return f"{what}; {trust}; {after}."


def _evidence_lines(evidence: Mapping[str, Any] | None) -> list[str]:
    """Computed evidence as one readable line."""
    if not evidence:
        return []
    parts = [
        f"{key.replace('_', ' ')} {_shown(value)}"
        for key, value in evidence.items()
        if value not in (None, [])
    ]
    return [f"Computed: {'; '.join(parts)}."]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(Interval(value["lower"], value["upper"]))
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _upper(text: str) -> str:
    """The text with a capital first letter; symbols such as V_f are capitals already."""
    return text[:1].upper() + text[1:]
