"""SPEC.toml: a task, what counts, a model and a harness, read and validated; imports pomdp and this package's parts.

    task = "library:repo_repair"      # or the path of a .pomdp file, from the spec's folder; or a distribution:
                                      # [{task = "library:flip:3", weight = 2}, {task = "library:flip:4", weight = 1}]
    horizon = 4                       # or discount = 0.95, or both; the task's own where neither is given
    model = "naive"                   # or {kind = "bayes", temperature = 0.5}

    [harness]                         # the four parts may also stand at the top
    tools = ["coarsen:*>..."]         # each list left to right, first innermost
    control = ["timeout:run-tests:0.1", {name = "step_limit", n = 6}]
    loop = ["malformed:0.05"]
    context = "last:2"                # or a list: a map and then its wrappers

    [tokens]                          # optional sizes of calls and results
    calls = {run-tests = 20}
    results = {fails-1 = 200}
    default = 20

    [memo]                            # the answers that `hpomdp memo` asks for

A control may also be a table, name = arguments: `control = {stall = "3:4", step_limit = 6}`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harnesses.constructors import mixture
from harnesses.constructors.catalogue import Part, parse_part
from harnesses.context import MapRecipe, Sizes, parse_map
from harnesses.harness import Harness
from harnesses.models import StatelessModel
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError

KEYS = (
    "task",
    "horizon",
    "discount",
    "model",
    "harness",
    "tools",
    "control",
    "loop",
    "context",
    "tokens",
    "memo",
)
PARTS = ("tools", "control", "loop", "context")
MODEL_KEYS = ("kind", "temperature", "rules", "otherwise")
MAX_BYTES = 1_000_000


@dataclass(frozen=True, eq=False)
class Spec:
    """What one file says: `task_text` as written, the `task` model, the `criterion`, the `harness` and its `model`.

    `sizes` are the tokens of calls and results, `memo` the raw table of that name.
    """

    task_text: str
    task: POMDP
    criterion: Criterion
    harness: Harness
    model: StatelessModel
    sizes: Sizes
    memo: Mapping[str, Any] = field(default_factory=dict)

    def with_context(self, recipe: MapRecipe) -> Spec:
        """The same spec with another context map."""
        return replace(self, harness=replace(self.harness, context=recipe))

    def with_model(self, text: str) -> Spec:
        """The same task and harness with another model, by kind or `kind:temperature`."""
        return replace(self, model=_model(text))

    def with_harness(self, harness: Harness) -> Spec:
        """The same task and model in another harness."""
        return replace(self, harness=harness)

    def asked(self, discount: str | None, horizon: int | None) -> Spec:
        """The same spec with the discount or horizon of a command line in place of its own; the other one stays."""
        if discount is None and horizon is None:
            return self
        own = self.criterion
        criterion = Criterion.of(
            self.task,
            own.discount if discount is None else discount,
            own.horizon if horizon is None else horizon,
        )
        return replace(self, criterion=criterion)

    def json(self) -> dict[str, Any]:
        """What was asked, for the head of every command's output."""
        return {
            "task": self.task_text,
            "discount": self.criterion.gamma,
            "horizon": self.criterion.horizon,
            "model": self.model.text,
            "harness": self.harness.json(),
        }


def is_spec(text: str) -> bool:
    """Whether a command's MODEL argument names a spec: it ends in .toml."""
    return text.endswith(".toml")


def read_spec(path: str | Path) -> Spec:
    """The spec in a file. ModelError names the file and the entry; OSError where it cannot be read."""
    if str(path).startswith("library:"):
        raise ModelError(
            f"{path} is a task without a harness; give a SPEC.toml that names it, or use hpomdp context"
        )
    path = Path(path)
    data = _document(path)
    try:
        return parse_spec(data, path.parent)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def read_memo(path: str | Path) -> tuple[Mapping[str, Any], Spec | None]:
    """What `hpomdp memo` reads: the document, and the spec in it where it has a task. Raises as `read_spec` does."""
    path = Path(path)
    data = _document(path)
    try:
        return data, memo_spec(data, path.parent)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def memo_spec(data: Mapping[str, Any], folder: Path = Path()) -> Spec | None:
    """The spec behind a memo: none without a task, and a context map, which no memo looks at, may be left out."""
    if "task" not in data:
        _known(data, ("memo",), "a spec without a task")
        return None
    named = "context" in data or "context" in _table(data.get("harness", {}), "harness")
    return parse_spec(data if named else {**data, "context": "null"}, folder)


def _document(path: Path) -> Mapping[str, Any]:
    """The TOML in a file. ModelError names the file."""
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ModelError(
            f'{path}: more than {MAX_BYTES} bytes are no spec; give one such as task = "library:flip:3"'
        )
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise ModelError(f"{path}: not TOML: it is no text in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ModelError(f"{path}: not TOML: {error}") from None


def parse_spec(data: Mapping[str, Any], folder: Path = Path()) -> Spec:
    """The spec in a parsed TOML document; the path of a task is taken from `folder`. Raises ModelError."""
    _known(data, KEYS, "the spec")
    if "task" not in data:
        raise ModelError('the spec needs a task, such as task = "library:flip:3"')
    task, sizes, criterion = _question(data["task"], data, folder)
    text = data["task"] if isinstance(data["task"], str) else task.name
    given = _parts(data)
    try:
        context = parse_map(_texts(given["context"]))
    except ModelError as error:
        raise ModelError(f"context: {error}") from None
    tools, control, loop = (_constructors(given[name], name) for name in ("tools", "control", "loop"))
    harness = Harness(tools, control, loop, context)
    return Spec(
        text, task, criterion, harness, _model(data.get("model", "optimal")),
        _sizes(data.get("tokens", {}), sizes), _table(data.get("memo", {}), "memo"),
    )  # fmt: skip


def plain_spec(text: str, discount: str | None, horizon: int | None, context: MapRecipe) -> Spec:
    """The spec that `MODEL --map NAME:ARGS` stands for: the bare task under one context map."""
    data: dict[str, Any] = {"task": text}
    if discount is not None:
        data["discount"] = discount
    if horizon is not None:
        data["horizon"] = horizon
    task, sizes, criterion = _question(text, data, Path())
    harness = Harness((), (), (), context)
    return Spec(text, task, criterion, harness, StatelessModel("optimal"), sizes)


def _question(given: Any, data: Mapping[str, Any], folder: Path) -> tuple[POMDP, Sizes, Criterion]:
    """The task, its sizes and what counts; a library task without a discount has its natural horizon."""
    horizon, discount = data.get("horizon"), data.get("discount")
    if horizon is not None and (isinstance(horizon, bool) or not isinstance(horizon, int)):
        raise ModelError(f"horizon is {horizon!r}; give a whole number such as horizon = 10")
    if discount is not None and (isinstance(discount, bool) or not isinstance(discount, (int, float, str))):
        raise ModelError(f"discount is {discount!r}; give a number such as discount = 0.95")
    model, sizes, natural = _distribution(given, folder) if isinstance(given, list) else _task(given, folder)
    if horizon is None and discount is None and model.discount is None:
        horizon = natural
    try:
        return model, sizes, Criterion.of(model, discount, horizon)
    except ModelError as error:
        said = str(error).replace("--horizon N", "horizon = N").replace("--discount G", "discount = G")
        raise ModelError(said.replace("a --discount below 1", "a discount below 1")) from None


def _task(given: Any, folder: Path) -> tuple[POMDP, Sizes, int | None]:
    """A task by name or path: its model, sizes and natural horizon."""
    text = _text(given, "task")
    if text.startswith("library:"):
        from pomdp.library import task as library_task

        found = library_task(text.removeprefix("library:"))
        return found.model, Sizes.of_task(found), found.horizon
    from pomdp.cassandra import read

    return read(folder / text), Sizes(), None


def _distribution(given: list[Any], folder: Path) -> tuple[POMDP, Sizes, int | None]:
    """A mixture of tasks; sizes of the earlier ones come first, the horizon is the longest."""
    if not given:
        raise ModelError('task is an empty list; give entries such as {task = "library:flip:3", weight = 1}')
    parts: list[tuple[POMDP, Any]] = []
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    horizons: list[int | None] = []
    for i, entry in enumerate(given):
        table = _table(entry, f"task[{i}]")
        _known(table, ("task", "weight"), f"task[{i}]")
        model, sizes, natural = _task(table.get("task"), folder)
        parts.append((model, table.get("weight", 1)))
        calls, results = {**sizes.calls, **calls}, {**sizes.results, **results}
        horizons.append(natural)
    known = [h for h in horizons if h is not None]
    return mixture(parts), Sizes(calls, results), max(known) if len(known) == len(given) else None


def _parts(data: Mapping[str, Any]) -> dict[str, Any]:
    """The four parts, from [harness] or from the top, empty where absent."""
    inside = _table(data.get("harness", {}), "harness")
    _known(inside, PARTS, "harness")
    twice = next((name for name in PARTS if name in inside and name in data), None)
    if twice is not None:
        raise ModelError(f"{twice} stands in [harness] and at the top; keep one of them")
    both = {**inside, **{name: data[name] for name in PARTS if name in data}}
    if "context" not in both:
        raise ModelError('the spec needs a context map, such as context = "last:2"')
    return {name: both.get(name, []) for name in PARTS}


def _texts(given: Any) -> str | list[str]:
    """A context map: a text, or a list of texts."""
    texts = given if isinstance(given, list) else [given]
    wrong = next((text for text in texts if not isinstance(text, str)), None) if texts else given
    if wrong is not None:
        raise ModelError(
            f'{wrong!r} is no map; give a text such as "last:2" or a list such as ["last:1", "counter"]'
        )
    return given


def _constructors(given: Any, part: str) -> tuple[Part, ...]:
    """One part's constructors from a text, a table, a list of these, or a table name -> arguments."""
    if isinstance(given, Mapping) and "name" not in given:
        entries: Sequence[Any] = [_named(name, arguments) for name, arguments in given.items()]
    else:
        entries = given if isinstance(given, list) else [given]
    found = []
    for i, entry in enumerate(entries):
        try:
            found.append(parse_part(entry))
        except ModelError as error:
            raise ModelError(f"{part}[{i}]: {error}") from None
    return tuple(found)


def _named(name: str, arguments: Any) -> Any:
    """A constructor from one line `name = arguments` of a table."""
    if isinstance(arguments, Mapping):
        return {"name": name, **arguments}
    values = arguments if isinstance(arguments, list) else [arguments]
    return ":".join([name, *map(str, values)])


def _model(given: Any) -> StatelessModel:
    """The model from its kind, `kind:temperature` or a table."""
    if isinstance(given, str):
        name, _, warmth = given.partition(":")
        table: Mapping[str, Any] = {"kind": name} | ({"temperature": warmth} if warmth else {})
    else:
        table = _table(given, "model")
    _known(table, MODEL_KEYS, "model")
    if "kind" not in table:
        raise ModelError('model needs a kind, such as model = {kind = "bayes", temperature = 0.5}')
    try:
        temperature = float(table.get("temperature", 0.0))
    except (TypeError, ValueError):
        raise ModelError(
            f"model.temperature is {table['temperature']!r}; give a number such as 0.5"
        ) from None
    kind = _text(table["kind"], "model.kind").lower().replace("-", "_")
    rules = _table(table.get("rules", {}), "model.rules")
    return StatelessModel(
        kind,
        temperature,
        {str(k): _text(v, f"model.rules.{k}") for k, v in rules.items()},
        None if table.get("otherwise") is None else _text(table["otherwise"], "model.otherwise"),
    )


def _sizes(given: Any, sizes: Sizes) -> Sizes:
    """The task's sizes with those of [tokens] in their place."""
    table = _table(given, "tokens")
    _known(table, ("calls", "results", "default"), "tokens")
    calls, results = (_table(table.get(name, {}), f"tokens.{name}") for name in ("calls", "results"))
    return Sizes({**sizes.calls, **calls}, {**sizes.results, **results}, table.get("default", sizes.default))


def _known(table: Mapping[str, Any], names: Sequence[str], place: str) -> None:
    """ModelError for a key that does not exist, with the nearest and all known ones."""
    unknown = next((key for key in table if key not in names), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, names, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ModelError(f"{place} has no entry {unknown!r}{meant}; known: {', '.join(names)}")


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise ModelError(f"{place} is {value!r}; give a text in quotes")
    return value


def _table(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ModelError(f"{place} is {value!r}; give a table, such as [{place}]")
    return value
