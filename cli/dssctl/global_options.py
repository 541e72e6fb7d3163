"""The options that every command takes, and how they reach the settings.

Invariant: an option sets the same as its key of the configuration, with the same error messages;
the last one on the line wins.
"""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperOption

from dssctl.config import put as put_key
from dssctl.config.keys import OUTPUTS
from dssctl.limits import CALL_TIMEOUT_S, OPERATION_WAIT_S
from dssctl.settings import Settings


class SettingsOption(TyperOption):
    """Sets one field of the settings, wherever it stands on the line."""

    section = "Global options"
    """The section of the help text."""

    def __init__(
        self,
        flags: list[str],
        put: Callable[[Settings, Any], None],
        **attributes: Any,  # noqa: ANN401 -- Typer's own
    ) -> None:
        super().__init__(
            param_decls=flags,
            callback=lambda ctx, _option, value: self._set(ctx, value),
            expose_value=False,
            default=None,
            **attributes,
        )
        self._put = put

    def _set(self, ctx: Any, value: Any) -> None:  # noqa: ANN401 -- Typer's private types
        if value is None or value == ():
            return
        try:
            self._put(ctx.find_root().obj, value)
        except ValueError as problem:
            raise typer.BadParameter(str(problem), ctx=ctx, param=self) from problem


class HelpJsonOption(TyperOption):
    """Describes the command that it stands beside for programs, before anything else is checked."""

    section = "Global options"

    def __init__(self) -> None:
        super().__init__(
            param_decls=["--help-json"],
            callback=lambda ctx, _option, value: _ask_for_help_json(ctx, value),
            expose_value=False,
            is_flag=True,
            is_eager=True,
            default=False,
            help="The command, or all below it, as JSON: options, impact, what it prints.",
        )


def _ask_for_help_json(ctx: Any, wanted: bool) -> None:  # noqa: ANN401 -- Typer's private types
    if wanted:
        raise HelpJsonWanted(tuple(ctx.command_path.split()[1:]))


class HelpJsonWanted(Exception):
    """The command line asks for a part of the tree; the whole tree is known only to the callers."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__(*words)
        self.words = words


class KeyOption(SettingsOption):
    """Sets one key of the configuration, before other origins may."""

    def __init__(self, flags: list[str], key: str, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        super().__init__(flags, lambda settings, value: _give(settings, key, value), **attributes)


def _give(settings: Settings, key: str, value: str | bool) -> None:
    text = value if isinstance(value, str) else ("yes" if value else "no")
    put_key(settings, key, text)
    settings.flags[key] = text


def _give_each(settings: Settings, pairs: "tuple[str, ...]") -> None:
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"'{pair}' is not KEY=VALUE; see dssctl config show.")
        _give(settings, key, text)


def global_options() -> list[Any]:
    """New options each time: an option belongs to one command."""
    return [
        *_target_options(),
        *_credential_options(),
        *_printing_options(),
        *_guarding_options(),
        HelpJsonOption(),
    ]


def _target_options() -> list[Any]:
    return [
        KeyOption(
            ["-o", "--output"], "output", metavar="FORMAT", help=f"{OUTPUTS}; table where absent."
        ),
        KeyOption(
            ["-c", "--context"],
            "context",
            metavar="NAME",
            help="The target to use; see dssctl contexts.",
        ),
        SettingsOption(
            ["--no-context"],
            lambda settings, _value: _give(settings, "context", ""),
            is_flag=True,
            help="Use no context, even where one is chosen.",
        ),
        KeyOption(
            ["--endpoint"],
            "endpoint",
            metavar="ADDRESS",
            help="unix:PATH, HOST:PORT, or dss://HOST:PORT for TLS; else DSSCTL_ENDPOINT, the "
            "context, the default socket.",
        ),
        KeyOption(
            ["--timeout"],
            "timeout",
            metavar="SECONDS",
            help=f"How long to wait; where absent, {CALL_TIMEOUT_S:g} for a call and "
            f"{OPERATION_WAIT_S:g} for the end of an operation.",
        ),
    ]


def _credential_options() -> list[Any]:
    return [
        KeyOption(
            ["--token-file"],
            "token_file",
            metavar="FILE",
            help="With the token of this user, which nobody else may read.",
        ),
        KeyOption(
            ["--tls-ca"],
            "tls_ca",
            metavar="FILE.pem",
            help="Who signs the certificates of daemons.",
        ),
        KeyOption(
            ["--tls-cert"], "tls_cert", metavar="FILE.pem", help="The certificate of this user."
        ),
        KeyOption(["--tls-key"], "tls_key", metavar="FILE.pem", help="Its key."),
    ]


def _printing_options() -> list[Any]:
    return [
        KeyOption(
            ["--color"], "color", metavar="WHEN", help="auto, always or never; see NO_COLOR."
        ),
        KeyOption(
            ["--time"],
            "time",
            metavar="STYLE",
            help="Times in tables: relative (default), iso or unix.",
        ),
        SettingsOption(
            ["--no-headers"],
            lambda settings, _value: _give(settings, "headers", "no"),
            is_flag=True,
            help="Leave out the line of headers.",
        ),
        SettingsOption(
            ["--no-input"],
            lambda settings, _value: _give(settings, "input", "no"),
            is_flag=True,
            help="Never ask anything.",
        ),
        SettingsOption(
            ["--no-pager"],
            lambda settings, _value: _give(settings, "pager", ""),
            is_flag=True,
            help="Use no pager; see DSSCTL_PAGER and PAGER.",
        ),
    ]


def _guarding_options() -> list[Any]:
    return [
        KeyOption(
            ["-q", "--quiet"], "quiet", is_flag=True, help="Print no notes; errors are still told."
        ),
        KeyOption(
            ["--read-only/--write"],
            "read_only",
            is_flag=True,
            help="Refuse to change anything, or allow it where the context is read-only.",
        ),
        SettingsOption(
            ["-X"],
            _give_each,
            metavar="KEY=VALUE",
            multiple=True,
            help="Any key of dssctl config show; repeatable.",
        ),
    ]


def section_of(parameter: Any) -> str:  # noqa: ANN401 -- Typer's private types
    """The section of the help text that a parameter stands in."""
    if isinstance(parameter, SettingsOption):
        return parameter.section
    return "Arguments" if parameter.param_type_name == "argument" else "Options"
