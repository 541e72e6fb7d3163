"""Every key of the configuration: its name, its variable, and what it sets.

Invariant: a value is text, as for a flag, wherever it comes from; a key refuses the same values
from every origin, with the same words.
"""

from collections.abc import Callable
from typing import NamedTuple

from dss_core.times import parse_span_ms
from dssctl.limits import CALL_TIMEOUT_S, CONNECT_WAIT_S, WATCH_INTERVAL_S
from dssctl.settings import ENGINES, SPARK_MASTER, Colour, Format, Settings, TimeStyle

WATCH_INTERVAL_S_MIN = 0.2
"""The least pause: a list costs the daemon a look at every group."""


YES = frozenset({"yes", "true", "on", "1"})
NO = frozenset({"no", "false", "off", "0"})

TEMPLATE = "template="


class Key(NamedTuple):
    """One thing that can be configured."""

    name: str
    put: Callable[[Settings, str], None]
    """Raises ValueError if the value is illegal."""
    help: str
    default: str = ""
    """As `config show` prints it; empty: no default."""
    of_lists: bool = False
    """Whether it is only for single commands, in their section of the file."""

    @property
    def variable(self) -> str:
        """The environment variable of this key."""
        return f"DSSCTL_{self.name.upper()}"


def spelt(name: str) -> str:
    """The name of a key in the file: flags have - where keys have _."""
    return name.replace("-", "_")


def put(settings: Settings, name: str, text: str) -> None:
    """Set one key.

    Raises:
        ValueError: the key does not exist, or the value is illegal for it.
    """
    found = KEYS.get(name)
    if found is None:
        raise ValueError(f"there is no key '{name}'.{did_you_mean(name, KEYS)}")
    found.put(settings, text)


def did_you_mean(name: str, known: "list[str] | dict[str, Key]") -> str:
    """A sentence with similar names, or nothing."""
    from dssctl.near_names import near_names

    near = near_names(name, known)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def truth(text: str) -> bool:
    """A yes or a no.

    Raises:
        ValueError: it is neither.
    """
    if text.lower() in YES | NO:
        return text.lower() in YES
    raise ValueError(f"'{text}' is neither yes nor no.")


def seconds(text: str) -> float:
    """A number of seconds, or a span.

    Raises:
        ValueError: it is neither.
        IllegalSpan: it is neither.
    """
    try:
        return float(text.removesuffix("s"))
    except ValueError:
        return parse_span_ms(text) / 1_000


def _put_context(_settings: Settings, text: str) -> None:
    """Do nothing: the values of a context are looked up once it is known which context wins."""
    if text != text.strip():
        raise ValueError(f"'{text}' is no name of a context.")


def _put_endpoint(settings: Settings, text: str) -> None:
    settings.endpoint = text or None


def _put_token_file(settings: Settings, text: str) -> None:
    settings.token_file = text or None


def _put_tls_ca(settings: Settings, text: str) -> None:
    settings.tls_ca = text or None


def _put_tls_cert(settings: Settings, text: str) -> None:
    settings.tls_cert = text or None


def _put_tls_key(settings: Settings, text: str) -> None:
    settings.tls_key = text or None


def _put_output(settings: Settings, text: str) -> None:
    if text.startswith(TEMPLATE):
        settings.format, settings.template = Format.TEMPLATE, text.removeprefix(TEMPLATE)
        return
    if text not in set(Format) - {Format.TEMPLATE}:
        raise ValueError(f"'{text}' is none of {OUTPUTS}.")
    settings.format = Format(text)


OUTPUTS = ", ".join(f"{TEMPLATE}TEXT" if each is Format.TEMPLATE else each for each in Format)


def _put_colour(settings: Settings, text: str) -> None:
    if text not in list(Colour):
        raise ValueError(f"'{text}' is none of {', '.join(Colour)}.")
    settings.colour = Colour(text)


def _put_time(settings: Settings, text: str) -> None:
    if text not in list(TimeStyle):
        raise ValueError(f"'{text}' is none of {', '.join(TimeStyle)}.")
    settings.time = TimeStyle(text)


def _put_timeout(settings: Settings, text: str) -> None:
    timeout_s = seconds(text)
    if not 0 < timeout_s < float("inf"):
        raise ValueError("a timeout is a positive number of seconds.")
    settings.timeout_s = settings.wait_s = timeout_s


def _put_connect_wait(settings: Settings, text: str) -> None:
    wait_s = seconds(text)
    if not 0 <= wait_s < float("inf"):
        raise ValueError(f"'{text}' is no number of seconds.")
    settings.connect_s = wait_s


def _put_headers(settings: Settings, text: str) -> None:
    settings.headers = truth(text)


def _put_input(settings: Settings, text: str) -> None:
    settings.may_ask = truth(text)


def _put_pager(settings: Settings, text: str) -> None:
    settings.pager = text


def _put_quiet(settings: Settings, text: str) -> None:
    settings.quiet = truth(text)


def _put_read_only(settings: Settings, text: str) -> None:
    settings.read_only = truth(text)


def _put_engine(settings: Settings, text: str) -> None:
    if text not in ENGINES:
        raise ValueError(f"'{text}' is none of {', '.join(ENGINES)}.")
    settings.engine = text


def _put_spark_master(settings: Settings, text: str) -> None:
    settings.spark_master = text or SPARK_MASTER


def _put_filter(settings: Settings, text: str) -> None:
    settings.listing.filter = text


def _put_sort(settings: Settings, text: str) -> None:
    settings.listing.sort = text


def _put_columns(settings: Settings, text: str) -> None:
    settings.listing.columns = text


def _put_limit(settings: Settings, text: str) -> None:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 1 << 31):
        raise ValueError(f"'{text}' is no number from 1.")
    settings.listing.limit = int(text)


def _put_watch(settings: Settings, text: str) -> None:
    interval_s = seconds(text) if text else WATCH_INTERVAL_S
    if not WATCH_INTERVAL_S_MIN <= interval_s < float("inf"):
        raise ValueError(f"a list is looked at every {WATCH_INTERVAL_S_MIN:g} s at most.")
    settings.listing.watch_s = interval_s


_ALL = (
    Key("context", _put_context, "The named target; see dssctl contexts ls."),
    Key(
        "endpoint",
        _put_endpoint,
        "unix:PATH, HOST:PORT, or dss://HOST:PORT for TLS.",
        "the default socket",
    ),
    Key("token_file", _put_token_file, "With the token of this user."),
    Key("tls_ca", _put_tls_ca, "Who signs the certificates of daemons."),
    Key("tls_cert", _put_tls_cert, "The certificate of this user."),
    Key("tls_key", _put_tls_key, "Its key."),
    Key("output", _put_output, f"{OUTPUTS}.", "table"),
    Key("color", _put_colour, "auto, always or never; see NO_COLOR.", "auto"),
    Key("time", _put_time, "How tables show moments: relative, iso or unix.", "relative"),
    Key("timeout", _put_timeout, "Of one call, in seconds.", f"{CALL_TIMEOUT_S:g}"),
    Key("connect_wait", _put_connect_wait, "For a daemon that starts.", f"{CONNECT_WAIT_S:g}"),
    Key("headers", _put_headers, "Whether tables have a line of headers.", "yes"),
    Key("input", _put_input, "Whether anything may be asked at a terminal.", "yes"),
    Key(
        "pager", _put_pager, "Shows what a terminal has no room for; cat is none.", "PAGER, or less"
    ),
    Key("quiet", _put_quiet, "No notes on stderr.", "no"),
    Key("read_only", _put_read_only, "Refuse what changes something.", "no"),
    Key("engine", _put_engine, f"Of bulk jobs: {', '.join(ENGINES)}.", ENGINES[0]),
    Key("spark_master", _put_spark_master, "Of bulk jobs on Spark.", SPARK_MASTER),
    Key("filter", _put_filter, "Which items a listing shows.", of_lists=True),
    Key("sort", _put_sort, "The order of a listing.", of_lists=True),
    Key("columns", _put_columns, "The columns of a listing.", of_lists=True),
    Key("limit", _put_limit, "So many items at most.", of_lists=True),
    Key("watch", _put_watch, "How often a listing is looked at anew.", of_lists=True),
)
KEYS: dict[str, Key] = {each.name: each for each in _ALL}
