"""Schema: what a typed function takes, as JSON schema, and the check of arguments against it; imports pydantic.

Types are strict (the text "3" is no integer), every argument without a default is required, unknown arguments are
refused. Source: M1 §1.2.3 (schema, validation before execution).
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from harnesses.runtime.records import AgentError

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Untitled(GenerateJsonSchema):
    """Titles repeat the names and cost tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def arguments_model(function: Callable[..., Any], name: str, hidden: Collection[str] = ()) -> type[BaseModel]:
    """The arguments of a function as a model, without the `hidden` ones, which the harness gives.

    AgentError where one has no type, or a type that JSON cannot carry.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise AgentError(f"tool {name}: its type hints cannot be read: {error}") from None
    fields: dict[str, Any] = {}
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind not in _NAMED:
            raise AgentError(f"tool {name}: argument {parameter} has no name of its own; write `path: str`")
        if parameter.name in hidden:
            continue
        if parameter.name not in hints:
            raise AgentError(
                f"tool {name}: argument {parameter.name} has no type; write `{parameter.name}: str`"
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        # Under an alias an argument may be called anything, also `schema` or `_x`, which models reserve.
        fields[f"argument{place}"] = (hints[parameter.name], Field(default, alias=parameter.name))
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid", strict=True), **fields)
        model.model_json_schema()
    except PydanticUserError as error:
        first = str(error).splitlines()[0]
        raise AgentError(f"tool {name}: an argument's type has no JSON schema: {first}") from None
    return model


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema that the model of a chat is shown."""
    schema = model.model_json_schema(schema_generator=_Untitled)
    schema.pop("title", None)
    return schema


def read_arguments(model: type[BaseModel], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the function takes them. AgentError naming every argument at fault."""
    try:
        read = model.model_validate_json(json.dumps(dict(arguments)))
    except ValidationError as error:
        raise AgentError("; ".join(_fault(item, model) for item in error.errors())) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(f"arguments that JSON cannot carry: {error}") from None
    return {str(field.alias): getattr(read, key) for key, field in type(read).model_fields.items()}


def _fault(item: Any, model: type[BaseModel]) -> str:
    """One fault in one line."""
    place = ".".join(str(part) for part in item["loc"])
    if item["type"] == "missing":
        return f"missing required argument: {place}"
    if item["type"] == "extra_forbidden":
        known = ", ".join(str(field.alias) for field in model.model_fields.values()) or "none"
        return f"unexpected argument: {place}; the arguments are {known}"
    shown = json.dumps(item["input"])
    message = item["msg"][:1].lower() + item["msg"][1:]
    return f"argument {place}: {message}, got {shown if len(shown) <= 80 else shown[:77] + '...'}"
