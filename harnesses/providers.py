"""Providers: chat models by name, each provider's package imported only when it is named; imports langchain_model.

`openai:gpt-4o-mini`, `anthropic:...`, `ollama:...`, any server that speaks OpenAI's protocol by its address, or
`package.module:Name`, a class or function without arguments that makes a model. A missing package or key is told in
one line with its remedy.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harnesses.langchain_model import LangChainModel
from harnesses.runtime.models import Model
from harnesses.runtime.records import AgentError

SECONDS = 120  # for one reply of a provider


class Provider(NamedTuple):
    """A class of a package of LangChain's, the variable that holds its key (None for no key), and its settings.

    No provider retries by itself: the harness does, so that every attempt is in the trace.
    """

    package: str
    made: str
    key: str | None
    settings: Mapping[str, Any]


PROVIDERS = {
    "openai": Provider(
        "langchain-openai", "ChatOpenAI", "OPENAI_API_KEY", {"max_retries": 0, "timeout": SECONDS}
    ),
    "anthropic": Provider(
        "langchain-anthropic", "ChatAnthropic", "ANTHROPIC_API_KEY", {"max_retries": 0, "timeout": SECONDS}
    ),
    "ollama": Provider("langchain-ollama", "ChatOllama", None, {"client_kwargs": {"timeout": SECONDS}}),
}


def model_named(name: str, base_url: str | None = None) -> Model:
    """The model of this name, at another address where one is given. AgentError with the remedy if there is none."""
    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        raise AgentError(
            f"the model {name!r} has no provider; write openai:gpt-4o-mini or package.module:Class"
        )
    if provider not in PROVIDERS:
        return _made(provider, model, name, base_url)
    known = PROVIDERS[provider]
    made = _imported(known, provider)
    settings = {"model": model, **known.settings}
    if base_url is not None:
        settings["base_url"] = _address(base_url)
    if known.key is not None and not os.environ.get(known.key):
        if base_url is None:
            raise AgentError(
                f"{provider} needs a key: set {known.key}, or name a local server with --base-url"
            )
        settings["api_key"] = "none"  # the libraries insist on one, local servers do not
    try:
        return LangChainModel(made(**settings), name)
    except Exception as error:
        raise AgentError(f"{name} cannot be made: {' '.join(str(error).split())[:300]}") from None


def _imported(known: Provider, provider: str) -> Any:
    try:
        return getattr(importlib.import_module(known.package.replace("-", "_")), known.made)
    except ModuleNotFoundError as error:
        raise AgentError(
            f"{provider} needs the package {known.package} ({error}): pip install {known.package}"
        ) from None


def _made(module: str, attribute: str, name: str, base_url: str | None) -> Model:
    """The model of `package.module:Name`."""
    known = ", ".join(PROVIDERS)
    if base_url is not None:
        raise AgentError(f"--base-url is for the providers {known}; {name} makes its model itself")
    try:
        with _from_here():
            found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise AgentError(
            f"no model {name!r} ({error}): the providers are {known}; a class of yours is package.module:Class"
        ) from None
    try:
        ready = not isinstance(found, type) and (hasattr(found, "bind_tools") or hasattr(found, "reply"))
        model = found if ready else found()
    except Exception as error:
        raise AgentError(
            f"{name} cannot be made without arguments: {' '.join(str(error).split())[:300]}"
        ) from None
    if hasattr(model, "bind_tools"):
        return LangChainModel(model, name)
    if not hasattr(model, "reply"):
        raise AgentError(
            f"{name} gave a {type(model).__name__}, neither a chat model of LangChain nor a Model"
        )
    return model


@contextmanager
def _from_here() -> Iterator[None]:
    """Modules of the current folder can be imported too."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _address(url: str) -> str:
    """The address of a server, which goes into traces: http or https, and without a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AgentError(f"{url!r} is no address of a server; write http://localhost:8000/v1")
    if parts.username or parts.password:
        raise AgentError("an address with a password would stand in the trace; give the key in its variable")
    return url
