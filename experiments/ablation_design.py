"""Arms of an ablation: factors of a harness, their levels, and which settings a design compares; imports harnesses.

A document is a spec in plain values, as TOML would hold it; an arm is the baseline document with some settings
changed. Nothing here computes a value. Source: M1 §1.4.5 (factorial), §1.4.6.
"""

from __future__ import annotations

import difflib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesses.constructors.catalogue import KNOWN, parse_part
from harnesses.context import parse_map
from harnesses.spec import Spec, parse_spec, read_spec
from pomdp.model import ModelError

FACTORIAL, ONE_AT_A_TIME, LEAVE_ONE_OUT = DESIGNS = ("factorial", "one-at-a-time", "leave-one-out")
PARTS = ("tools", "control", "loop")
FIELDS = ("kind", "temperature", "otherwise")
NONE, CONTEXT, MODEL = "none", "context", "model"
BASELINE = "baseline"
MAX_ARMS = 256
EXAMPLE = "--vary context=last:1,last:3 or --vary control.stall=none,3-4"

Document = dict[str, Any]


@dataclass(frozen=True)
class Factor:
    """What is varied, by name as on the command line, its levels in canonical text, and the baseline's level."""

    name: str
    levels: tuple[str, ...]
    baseline: str

    @property
    def others(self) -> tuple[str, ...]:
        """The levels that are compared with the baseline's."""
        return tuple(level for level in self.levels if level != self.baseline)


@dataclass(frozen=True)
class Plan:
    """A design made ready: `base` is the baseline's document, `arms` the changes of each arm, the baseline first.

    `own` says whether the baseline is the spec as it was given; `notes` what a reader must know beside.
    """

    design: str
    base: Document
    factors: tuple[Factor, ...]
    arms: tuple[Mapping[str, str], ...]
    own: bool
    notes: tuple[str, ...] = ()


def document(path: Path) -> Document:
    """The spec in a file as a document that stands alone: canonical names, tasks by absolute path.

    Raises ModelError for what is no spec, OSError where the file cannot be read.
    """
    spec = read_spec(path)
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    model: Document = {"kind": spec.model.kind, "temperature": _number(spec.model.temperature)}
    if spec.model.otherwise is not None:
        model |= {"otherwise": spec.model.otherwise, "rules": dict(spec.model.rules)}
    found: Document = {
        "task": _anchored(raw["task"], path.parent),
        "model": model,
        "harness": spec.harness.json(),
    }
    return found | {name: raw[name] for name in ("horizon", "discount", "tokens") if name in raw}


def spec_of(found: Mapping[str, Any]) -> Spec:
    """The spec that a document holds."""
    return parse_spec(found)


def read_document(text: str) -> Document:
    """The document in a text: JSON, or the path of a SPEC.toml."""
    return json.loads(text) if text.lstrip().startswith("{") else document(Path(text))


def factor(text: str, base: Mapping[str, Any]) -> Factor:
    """The factor in `NAME=LEVEL,LEVEL`; levels that hold commas are parted by semicolons. Raises ModelError.

    The baseline's level is the document's own setting where that is among the levels, else the first.
    """
    name, equals, given = text.partition("=")
    name = _name(name.strip(), text)
    words = [word.strip() for word in given.split(";" if ";" in given else ",") if word.strip()]
    if not equals or len(words) < 2:
        raise ModelError(f"--vary {text} needs two levels or more; an example is {EXAMPLE}")
    try:
        levels = tuple(canonical(name, word) for word in words)
    except ModelError as error:
        raise ModelError(f"--vary {text}: {error}") from None
    twice = next((level for i, level in enumerate(levels) if level in levels[:i]), None)
    if twice is not None:
        raise ModelError(f"--vary {text} has the level {twice} twice; each level is one arm")
    own = setting(base, name)
    return Factor(name, levels, own if own in levels else levels[0])


def canonical(name: str, level: str) -> str:
    """A level as every arm writes it. Raises ModelError where the factor can have no such level."""
    if name == CONTEXT:
        return parse_map(level).name
    if name.startswith(f"{MODEL}."):
        return _model_level(name, level)
    if level == NONE:
        return NONE
    constructor = name.partition(".")[2]
    return _arguments(parse_part(f"{constructor}:{level}").text, constructor)


def setting(base: Mapping[str, Any], name: str) -> str:
    """The level that a document has of a factor. ModelError where it has the constructor more than once."""
    if name == CONTEXT:
        return parse_map(base["harness"]["context"]).name
    if name.startswith(f"{MODEL}."):
        value = base["model"].get(name.partition(".")[2])
        return NONE if value is None else _model_level(name, str(value))
    part, _, constructor = name.partition(".")
    texts = [text for text in base["harness"][part] if parse_part(text).name == constructor]
    if len(texts) > 1:
        raise ModelError(
            f"{part} has {constructor} more than once ({', '.join(texts)}); vary one that stands there once"
        )
    return _arguments(parse_part(texts[0]).text, constructor) if texts else NONE


def changed(base: Mapping[str, Any], changes: Mapping[str, str]) -> Document:
    """The document with other levels of some factors; the factor `part[i]` takes away what stands at that place."""
    found: Document = json.loads(json.dumps(base))
    harness = found["harness"]
    for name, level in changes.items():
        part, _, rest = name.partition(".")
        if name == CONTEXT:
            harness["context"] = level
        elif part == MODEL:
            found["model"][rest] = level
        elif name.endswith("]"):
            part, _, place = name.removesuffix("]").partition("[")
            del harness[part][int(place)]
        else:
            harness[part] = _with(harness[part], rest, level)
    return found


def plan(given: Document, vary: Sequence[str], design: str) -> Plan:
    """The arms of a design, each of which is a spec that can be read. Raises ModelError before anything runs."""
    if design not in DESIGNS:
        raise ModelError(f"no design {design!r}; known: {', '.join(DESIGNS)}")
    if design == LEAVE_ONE_OUT:
        if vary:
            raise ModelError("leave-one-out removes each part of the spec in turn; leave --vary out")
        made = _leave_one_out(given)
    else:
        if not vary:
            raise ModelError(f"nothing is varied; give {EXAMPLE}, or --design leave-one-out")
        made = _varied(given, [factor(text, given) for text in vary], design)
    for changes in made.arms:
        try:
            spec_of(changed(made.base, changes))
        except ModelError as error:
            raise ModelError(f"arm {label(changes)}: {error}") from None
    return made


def arms_of(design: str, factors: Sequence[Factor]) -> tuple[dict[str, str], ...]:
    """The changes of each arm of a design with factors: all combinations or all single ones, the baseline first."""
    if design == ONE_AT_A_TIME:
        return ({}, *({f.name: level} for f in factors for level in f.others))
    return tuple(
        {f.name: level for f, level in zip(factors, chosen, strict=True) if level != f.baseline}
        for chosen in itertools.product(*((f.baseline, *f.others) for f in factors))
    )


def label(changes: Mapping[str, str]) -> str:
    """What an arm is called: its changes from the baseline, or `baseline`."""
    words = [
        f"without {level}" if name.endswith("]") else f"{name}={level}" for name, level in changes.items()
    ]
    return ", ".join(words) or BASELINE


def _varied(given: Document, factors: Sequence[Factor], design: str) -> Plan:
    """The baseline and all combinations, or all single changes."""
    names = [one.name for one in factors]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ModelError(f"--vary {twice} stands twice; give all its levels in one")
    own = all(one.baseline == setting(given, one.name) for one in factors)
    base = given if own else changed(given, {one.name: one.baseline for one in factors})
    size = math.prod(len(one.levels) for one in factors)
    if design == FACTORIAL and size > MAX_ARMS:
        raise ModelError(f"the factorial has {size} arms, more than {MAX_ARMS}; try --design {ONE_AT_A_TIME}")
    return Plan(design, base, tuple(factors), arms_of(design, factors), own)


def _leave_one_out(given: Document) -> Plan:
    """The spec, and the spec without each of its constructors; without its context map it shows everything."""
    harness, notes = given["harness"], []
    arms: list[dict[str, str]] = [{}]
    for part in PARTS:
        shown = [parse_part(text).name if text.startswith("{") else text for text in harness[part]]
        arms += [
            {f"{part}[{i}]": text if shown.count(text) == 1 else f"{text} ({part}[{i}])"}
            for i, text in enumerate(shown)
        ]
    horizon = spec_of(given).criterion.horizon
    if horizon is None:
        notes.append("the context map stays: without a horizon there is no map that shows everything")
    elif harness["context"] not in ("full", f"full:{horizon}"):
        arms.append({CONTEXT: "full"})
    if len(arms) == 1:
        raise ModelError(f"the spec has nothing that could be left out; give {EXAMPLE}")
    return Plan(LEAVE_ONE_OUT, given, (), tuple(arms), True, tuple(notes))


def _with(texts: Sequence[str], constructor: str, level: str) -> list[str]:
    """A part's list with one constructor set, put at its canonical place where it was not there, or removed."""
    found = [text for text in texts if parse_part(text).name != constructor]
    if level == NONE:
        return found
    new = parse_part(level if level.startswith("{") else f"{constructor}:{level}")
    place = next((i for i, text in enumerate(texts) if parse_part(text).name == constructor), None)
    if place is None:
        place = next((i for i, text in enumerate(found) if parse_part(text).rank > new.rank), len(found))
    return [*found[:place], new.text, *found[place:]]


def _arguments(text: str, constructor: str) -> str:
    """The arguments of a canonical text; the whole where that is JSON."""
    return text if text.startswith("{") else text.removeprefix(constructor).removeprefix(":")


def _name(name: str, text: str) -> str:
    """The factor's name with `_` for `-`, checked."""
    if name == CONTEXT:
        return name
    part, dot, rest = name.partition(".")
    rest = rest.replace("-", "_")
    known = FIELDS if part == MODEL else KNOWN[part] if part in PARTS else None
    if not dot or known is None:
        raise ModelError(
            f"--vary {text}: {name!r} is nothing to vary; known: context, "
            f"{', '.join(f'{part}.NAME' for part in PARTS)}, {', '.join(f'model.{one}' for one in FIELDS)}"
        )
    if rest not in known:
        home = next((p for p in PARTS if rest in KNOWN[p]), None)
        near = difflib.get_close_matches(rest, known, 1)
        hint = f"{home}.{rest} is one; " if home else f"did you mean {near[0]}? " if near else ""
        raise ModelError(f"--vary {text}: {part} has no {rest!r}; {hint}known: {', '.join(known)}")
    return f"{part}.{rest}"


def _model_level(name: str, level: str) -> str:
    if name == f"{MODEL}.temperature":
        try:
            return _number(float(level))
        except ValueError:
            raise ModelError(f"{name} is {level!r}; give a number such as 0.5") from None
    return level.lower().replace("-", "_") if name == f"{MODEL}.kind" else level


def _number(value: float) -> str:
    """The shortest text that reads back to the same number: 0.1, 1, inf."""
    return repr(value).removesuffix(".0")


def _anchored(task: Any, folder: Path) -> Any:
    """A task that names a file, by its absolute path; the entries of a distribution likewise."""
    if isinstance(task, list):
        return [{**entry, "task": _anchored(entry["task"], folder)} for entry in task]
    return task if task.startswith("library:") else str((folder / task).resolve())
