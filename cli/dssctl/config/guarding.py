"""Which guards protect the target of a command.

Invariant: the guards of the context in use hold whatever the endpoint is, and a daemon that
contexts name is guarded by them however it is reached; only `--no-context` leaves out both.
"""

from dssctl.config.addresses import same_daemon
from dssctl.config.document import Configuration, Context
from dssctl.settings import ContextInUse, Settings


def guards(
    settings: Settings, configuration: Configuration, context: Context | None, origin: str
) -> ContextInUse | None:
    """The guards of this invocation, given where its endpoint comes from."""
    at_endpoint = _naming(settings, configuration, context)
    holding = [each for each in (context, _strictest(at_endpoint)) if each is not None]
    if not holding:
        return None
    may_write = "read_only" in settings.flags
    return ContextInUse(
        name=holding[0].name,
        read_only=_first(holding, "read_only") if not may_write else "",
        protected=_first(holding, "protected"),
        elsewhere=_elsewhere(settings, context, at_endpoint, origin),
    )


def _naming(
    settings: Settings, configuration: Configuration, context: Context | None
) -> list[Context]:
    """The other contexts with the endpoint of this invocation; none with `--no-context`."""
    if settings.endpoint is None or _left(settings):
        return []
    if context is not None and _is_of(settings.endpoint, context):
        return []
    return [
        each
        for each in configuration.contexts.values()
        if each.endpoint and same_daemon(each.endpoint, settings.endpoint)
    ]


def _left(settings: Settings) -> bool:
    return settings.flags.get("context") == ""


def _is_of(endpoint: str, context: Context) -> bool:
    return bool(context.endpoint) and same_daemon(endpoint, context.endpoint)


def _strictest(contexts: list[Context]) -> Context | None:
    """One guard for several contexts: a read-only context beside one for changes forbids
    nothing."""
    if not contexts:
        return None
    protecting = [each for each in contexts if each.protected]
    return Context(
        name=(protecting or contexts)[0].name,
        read_only=all(each.read_only for each in contexts),
        protected=bool(protecting),
    )


def _first(holding: list[Context], guard: str) -> str:
    """The name of the first context with this guard."""
    return next((each.name for each in holding if getattr(each, guard)), "")


def _elsewhere(
    settings: Settings, context: Context | None, at_endpoint: list[Context], origin: str
) -> str:
    """A sentence if a command goes elsewhere than to the context in use."""
    if context is None or not context.endpoint or _left(settings) or settings.endpoint is None:
        return ""
    if _is_of(settings.endpoint, context):
        return ""
    given = "--endpoint" if origin == "a flag" else origin
    named = f", of the context {at_endpoint[0].name}" if at_endpoint else ""
    return (
        f"{given} sends this to {settings.endpoint}{named}, not to {context.endpoint} of the "
        f"context {context.name}, whose guards hold all the same"
    )
