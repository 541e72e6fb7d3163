"""Which origin of each value wins, for one command line.

Invariant: a flag wins over a variable, that over the context, that over the file (there, the
command's own section wins), and the default comes last.
"""

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dss_core.errors import ContextNotFound, DssError, IllegalArgument, IllegalConfig
from dssctl.config.addresses import same_daemon
from dssctl.config.document import Configuration, Context, config_path, read_configuration
from dssctl.config.guarding import guards
from dssctl.config.keys import KEYS, did_you_mean, put
from dssctl.settings import Settings

NO_CONTEXT = ""

CREDENTIALS = ("token_file", "tls_ca", "tls_cert", "tls_key")
"""Keys that are only for the endpoint of their own context."""


class Resolved(NamedTuple):
    """The value of a key, and its origin."""

    key: str
    text: str
    origin: str


def configure(settings: Settings, command: str, *, needs_context: bool = True) -> None:
    """Fill in settings that flags did not give; the command is given like `groups ls`.

    Raises:
        IllegalConfig: the file contains something that no configuration has.
        IllegalArgument: a variable has an illegal value.
        ContextNotFound: the context is not in the file, and is needed.
    """
    configuration = read_configuration(config_path())
    try:
        context = context_in_use(settings, configuration)
    except ContextNotFound:
        if needs_context:
            raise
        context = None
    origins: dict[str, str] = {}
    for each in resolved(settings, configuration, context, command):
        _put(settings, each)
        origins[each.key] = each.origin
    settings.context = guards(settings, configuration, context, origins.get("endpoint", ""))


def context_in_use(settings: Settings, configuration: Configuration) -> Context | None:
    """The context that a flag, a variable or the file names; None if none does.

    Raises:
        ContextNotFound: it is not in the file.
    """
    name = _named(settings, configuration).text
    if name == NO_CONTEXT:
        return None
    return found_context(configuration, name)


def found_context(configuration: Configuration, name: str) -> Context:
    """The context of that name.

    Raises:
        ContextNotFound: it is not in the file.
    """
    context = configuration.contexts.get(name)
    if context is None:
        near = did_you_mean(name, list(configuration.contexts)).strip()
        raise ContextNotFound(
            context=name, path=configuration.path, near=f"{near} " if near else ""
        )
    return context


def resolved(
    settings: Settings, configuration: Configuration, context: Context | None, command: str
) -> Iterator[Resolved]:
    """Each key that has a value, with the value's origin."""
    named = _named(settings, configuration)
    if named.text != NO_CONTEXT:
        yield named
    in_context = _of_context(context, settings)
    for_command = configuration.defaults.get(command, {})
    origins = (
        (settings.flags, "a flag"),
        (_Variables(), ""),
        (in_context, f"context {context.name}" if context else ""),
        (for_command, f'{configuration.path}, for "{command}"'),
        (configuration.values, str(configuration.path)),
    )
    for key in KEYS.values():
        if key.name == "context":
            continue
        for values, origin in origins:
            if key.name in values:
                yield Resolved(key.name, values[key.name], origin or key.variable)
                break


def _named(settings: Settings, configuration: Configuration) -> Resolved:
    for values, origin in (
        (settings.flags, "a flag"),
        (_Variables(), KEYS["context"].variable),
        (configuration.values, str(configuration.path)),
    ):
        if "context" in values:
            return Resolved("context", values["context"], origin)
    return Resolved("context", NO_CONTEXT, "")


def _of_context(context: Context | None, settings: Settings) -> Mapping[str, str]:
    """The values of a context. Its credentials are only for its own endpoint."""
    if context is None:
        return {}
    endpoint = settings.flags.get("endpoint") or _Variables().get("endpoint")
    is_elsewhere = endpoint is not None and not same_daemon(endpoint, context.endpoint)
    said = {
        "endpoint": context.endpoint,
        "output": context.default_output,
        "spark_master": context.spark_master,
        **{name: getattr(context, name) for name in CREDENTIALS},
    }
    return {
        name: text
        for name, text in said.items()
        if text and not (is_elsewhere and name in CREDENTIALS)
    }


class _Variables(Mapping[str, str]):
    """The environment, by the names of keys. An empty variable counts as absent."""

    def __getitem__(self, name: str) -> str:
        """The value."""
        text = os.environ.get(KEYS[name].variable)
        if not text:
            raise KeyError(name)
        return text

    def __iter__(self) -> Iterator[str]:
        """The keys that have values."""
        return (name for name in KEYS if os.environ.get(KEYS[name].variable))

    def __len__(self) -> int:
        """How many keys have values."""
        return sum(1 for _ in self)


def _put(settings: Settings, each: Resolved) -> None:
    if each.key in settings.flags:
        return  # it was put as it came
    try:
        put(settings, each.key, each.text)
    except (ValueError, DssError) as problem:
        rule = str(problem).rstrip(".")
        if each.origin.startswith("DSSCTL_"):
            argument = f"{each.origin} {each.text}"
            raise IllegalArgument(argument=argument, rule=rule) from problem
        raise IllegalConfig(source=each.origin, reason=rule) from problem
