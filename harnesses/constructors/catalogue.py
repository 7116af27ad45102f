"""Catalogue: constructors by text or table, with their part and place in the nesting; imports the constructors.

    parse_part("timeout:listen:1/10")
    parse_part({"name": "timeout", "action": "listen", "p": "1/10"})

Text is `name:argument:argument`, lists with commas; arguments that only a table can hold are written as JSON.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harnesses.constructors import arguments as arg
from harnesses.constructors.arguments import Parameter
from harnesses.constructors.base import chosen_actions
from harnesses.constructors.failures import deny, malformed, retry, timeout
from harnesses.constructors.guards import FROM_COSTS, NEVER, gate, guard
from harnesses.constructors.limits import CONSECUTIVE, TOTAL, call_budget, stall, step_limit
from harnesses.constructors.tools import coarsen, garble, merge, mixture, scratchpad, select
from harnesses.guard.costs import Costs, Reviewer
from pomdp.library import task
from pomdp.model import POMDP, ModelError

# The rank of the calls that `with_unexposed` adds: guards and timeouts never see them, budgets count them.
UNEXPOSED_RANK = 75


@dataclass(frozen=True)
class Part:
    """One constructor with its arguments.

    `part` is tools, control, loop or tasks; `text` canonical, so that `parse_part(text)` gives the same part; `rank`
    ascends from the innermost constructor outward; `apply` maps the model under it to the model with it.
    """

    part: str
    name: str
    text: str
    rank: int
    apply: Callable[[POMDP], POMDP] = field(compare=False, repr=False)
    arguments: Mapping[str, Any] = field(compare=False, repr=False, default_factory=dict)


@dataclass(frozen=True)
class Constructor:
    """A line of the catalogue: what a name means; `build(model, **arguments)` applies it."""

    name: str
    part: str
    rank: int
    parameters: tuple[Parameter, ...]
    build: Callable[..., POMDP]
    example: str


def _mixture(model: POMDP, tasks: Mapping[str, Any]) -> POMDP:
    """The model with other library tasks: it keeps the weight that they leave."""
    rest = 1 - sum(tasks.values())
    if rest <= 0:
        raise ModelError("mixture leaves the task itself no weight; the others' weights sum to less than 1")
    return mixture([(model, rest), *((task(name).model, weight) for name, weight in tasks.items())])


ACTIONS = Parameter("action", arg.names, arg.show_names)
FRESH = Parameter("fresh", arg.choice("frozen", "fresh"), arg.show_choice("frozen", "fresh"), "frozen")
VISIBLE = Parameter(
    "visible", arg.choice("hidden", "visible"), arg.show_choice("hidden", "visible"), "visible"
)
CONSTRUCTORS = (
    Constructor(
        "mixture",
        "tasks",
        0,
        (Parameter("tasks", arg.weights),),
        _mixture,
        '{name = "mixture", tasks = {"tmaze:4" = "1/2"}}',
    ),
    Constructor(
        "select",
        "tools",
        10,
        (Parameter("actions", arg.names, arg.show_names),),
        select,
        "select:listen,open-left",
    ),
    Constructor(
        "merge",
        "tools",
        20,
        (Parameter("groups", arg.groups, arg.show_groups),),
        merge,
        "merge:open=open-left|open-right",
    ),
    Constructor(
        "coarsen",
        "tools",
        30,
        (Parameter("map", arg.rules, arg.show_rules, keyword="g"),),
        coarsen,
        "coarsen:read>ok=flag-0|flag-1",
    ),
    Constructor(
        "garble",
        "tools",
        30,
        (Parameter("kernel", arg.table),),
        garble,
        '{name = "garble", kernel = {listen = {tiger-left = {tiger-left = "9/10", tiger-right = "1/10"}}}}',
    ),
    Constructor(
        "scratchpad",
        "tools",
        35,
        (Parameter("keys", arg.names, arg.show_names),),
        scratchpad,
        "scratchpad:a,b",
    ),
    Constructor(
        "timeout",
        "control",
        40,
        (
            ACTIONS,
            Parameter("p", arg.probability),
            Parameter("effect", arg.probability, default="0"),
            Parameter("charge", arg.charge, default="0"),
        ),
        timeout,
        "timeout:listen:1/10",
    ),
    Constructor(
        "retry",
        "control",
        50,
        (ACTIONS, Parameter("r", arg.whole), Parameter("charge", arg.charge, default="0")),
        lambda model, **arguments: _alone(model, **arguments),
        "retry:listen:2",
    ),
    Constructor(
        "gate",
        "control",
        60,
        (
            Parameter("action", arg.name),
            Parameter("bad", arg.names, arg.show_names),
            *(Parameter(name, arg.charge, default="0") for name in ("ask", "miss", "r")),
            *(Parameter(name, arg.probability, default="0") for name in ("e0", "e1")),
            FRESH,
        ),
        gate,
        "gate:open-left:tiger-left:1/2",
    ),
    Constructor(
        "guard",
        "control",
        60,
        (
            Parameter("action", arg.name),
            Parameter("allowed", arg.names, arg.show_names),
            Parameter("report", arg.table),
            Parameter("tau_esc", arg.probability_or(FROM_COSTS), default=FROM_COSTS),
            Parameter("tau_act", arg.probability_or(FROM_COSTS, NEVER), default=FROM_COSTS),
            Parameter("costs", arg.fields(Costs), default="{}"),
            Parameter("reviewer", arg.fields(Reviewer), default="{}"),
            FRESH,
        ),
        guard,
        '{name = "guard", action = "open-left", allowed = "tiger-right", report = {tiger-left = "1/10", '
        'tiger-right = "9/10"}, tau_esc = "3/8", tau_act = "31/32", costs = {ask = "1/2"}}',
    ),
    Constructor(
        "deny",
        "control",
        70,
        (ACTIONS, Parameter("charge", arg.charge, default="0")),
        deny,
        "deny:flip",
    ),
    Constructor(
        "call_budget",
        "control",
        80,
        (Parameter("n", arg.whole), Parameter("actions", arg.names, arg.show_names, default="*")),
        call_budget,
        "call_budget:6",
    ),
    Constructor(
        "malformed",
        "loop",
        90,
        (
            Parameter("p", arg.probability),
            Parameter("charge", arg.charge, default="0"),
            VISIBLE,
        ),
        malformed,
        "malformed:0.1:0.05",
    ),
    Constructor(
        "stall",
        "control",
        100,
        (
            Parameter("warn", arg.whole),
            Parameter("stop", arg.whole),
            Parameter("mode", arg.one_of(CONSECUTIVE, TOTAL), default=CONSECUTIVE),
        ),
        stall,
        "stall:3:4",
    ),
    Constructor("step_limit", "control", 100, (Parameter("n", arg.whole),), step_limit, "step_limit:6"),
)
KNOWN: dict[str, tuple[str, ...]] = {
    part: tuple(line.name for line in CONSTRUCTORS if line.part == part)
    for part in ("tasks", "tools", "control", "loop")
}


def parse_part(given: str | Mapping[str, Any]) -> Part:
    """The constructor that a text or a table names; ModelError that lists the known names or shows an example."""
    line, values = _read(given)
    read: dict[str, Any] = {}
    usual: set[str] = set()
    for parameter in line.parameters:
        where = f"{line.name} {parameter.name}"
        value = values.get(parameter.name, parameter.default)
        if value is None:
            raise ModelError(f"{where} is missing; an example is {line.example}")
        found = parameter.read(value, where)
        read[parameter.keyword or parameter.name] = found
        if parameter.default is not None and found == parameter.read(parameter.default, where):
            usual.add(parameter.name)
    return Part(
        line.part,
        line.name,
        _text(line, read, usual),
        line.rank,
        lambda model: line.build(model, **read),
        read,
    )


def joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts, innermost first, with each `retry` in the place of the timeout that it repeats.

    A retry repeats the last `timeout` before it whose actions include its own; the timeout goes on alone for the
    others. Without one there is nothing to repeat and the retry goes. Raises ModelError where the timeout comes after.
    """
    done: list[Part] = []
    for i, part in enumerate(parts):
        if part.name != "retry":
            done.append(part)
            continue
        later = next((p for p in parts[i + 1 :] if p.name == "timeout" and _overlap(p, part)), None)
        if later is not None:
            raise ModelError(
                f"{part.text} stands before {later.text}; write the timeout first, as the inner one"
            )
        places = [k for k, p in enumerate(done) if p.name in ("timeout", _REPEATED) and _overlap(p, part)]
        if places:
            inner = done[places[-1]]
            repeats = [*inner.arguments.get("retries", ()), part]
            done[places[-1]] = replace(
                inner,
                name=_REPEATED,
                text=f"{inner.text}+{part.text}",
                apply=_repeated(inner.arguments, repeats),
                arguments={**inner.arguments, "retries": repeats},
            )
    return tuple(done)


_REPEATED = "timeout+retry"


def _overlap(timed: Part, again: Part) -> bool:
    """Whether the actions of a timeout can include those of a retry: by name, as no model is there yet."""
    names, wanted = timed.arguments["action"], again.arguments["action"]
    return (
        "*" in names or any(set(name) & set("*?[") for name in (*names, *wanted)) or set(wanted) <= set(names)
    )


def _repeated(inner: Mapping[str, Any], retries: Sequence[Part]) -> Callable[[POMDP], POMDP]:
    """The timeout for the actions that no retry names, and each retry for its own."""

    def apply(model: POMDP) -> POMDP:
        left = set(chosen_actions(model, inner["action"]))
        for part in retries:
            again = set(chosen_actions(model, part.arguments["action"]))
            if not again <= left:
                missing = model.actions[min(again - left)]
                raise ModelError(f"{part.text} repeats {missing}, which has no timeout of its own before it")
            left -= again
            model = retry(
                model,
                [model.actions[a] for a in sorted(again)],
                part.arguments["r"],
                p=inner["p"],
                effect=inner["effect"],
                timeout_charge=inner["charge"],
                charge=part.arguments["charge"],
            )
        rest = [model.actions[a] for a in sorted(left)]
        return timeout(model, rest, inner["p"], inner["effect"], inner["charge"]) if rest else model

    return apply


def _alone(model: POMDP, **arguments: Any) -> POMDP:
    """A retry that nobody has joined to its timeout."""
    raise ModelError(
        f"retry of {', '.join(arguments['action'])} needs its timeout: write control = "
        '["timeout:listen:1/10", "retry:listen:2"], which joined() puts together'
    )


def _read(given: str | Mapping[str, Any]) -> tuple[Constructor, dict[str, Any]]:
    """The line of the catalogue and the arguments by name."""
    if isinstance(given, str) and given.strip().startswith("{"):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise ModelError(f"constructor {str(given)[:40]!r} is no JSON: {error}") from None
    if isinstance(given, Mapping):
        table = {str(key).replace("-", "_"): value for key, value in given.items()}
        if not isinstance(table.get("name"), str):
            raise ModelError('a constructor table needs a name, such as {name = "step_limit", n = 6}')
        line = _line(table.pop("name"))
        known = [parameter.name for parameter in line.parameters]
        wrong = next((key for key in table if key not in known), None)
        if wrong is not None:
            raise ModelError(f"{line.name} has no argument {wrong!r}; known: {', '.join(known)}")
        return line, table
    if not isinstance(given, str):
        raise ModelError(f"a constructor is a text or a table, not {given!r}; an example is step_limit:6")
    name, *words = given.strip().split(":")
    line = _line(name)
    words = arg.ranges_split(words, [parameter.read is arg.whole for parameter in line.parameters])
    if len(words) > len(line.parameters):
        raise ModelError(
            f"{given} has {len(words)} arguments, at most {len(line.parameters)}; see {line.example}"
        )
    pairs = zip(line.parameters, words, strict=False)
    return line, {parameter.name: word for parameter, word in pairs if word}


def _line(name: str) -> Constructor:
    """The constructor of that name, `-` and `_` being the same."""
    wanted = name.strip().replace("-", "_")
    found = next((line for line in CONSTRUCTORS if line.name == wanted), None)
    if found is None:
        names = [line.name for line in CONSTRUCTORS]
        near = difflib.get_close_matches(wanted, names, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ModelError(f"no constructor {name!r}; {hint}known: {', '.join(names)}")
    return found


def _text(line: Constructor, read: Mapping[str, Any], usual: set[str]) -> str:
    """Canonical text without the usual arguments at the end; JSON where an argument has no text."""
    values = {parameter: read[parameter.keyword or parameter.name] for parameter in line.parameters}
    words = {parameter: parameter.show(value) for parameter, value in values.items()}
    if any(word is None and parameter.name not in usual for parameter, word in words.items()):
        kept = {p.name: arg.plain(value) for p, value in values.items() if p.name not in usual}
        return json.dumps({"name": line.name, **kept})
    while words and next(reversed(words)).name in usual:
        words.popitem()
    return ":".join([line.name, *(str(word) for word in words.values())])
