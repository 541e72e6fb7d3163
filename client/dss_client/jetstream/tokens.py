"""The acknowledgement subjects of JetStream, ``$JS.ACK...``: read and formed.

Invariant: exactly 9 tokens, or 11 and more; numbers are ASCII digits within 64 bits; nothing else
passes. They serve metadata and tools that read them: a message of DSS is acknowledged through its
grant, never by a subject.
"""

import re
from dataclasses import dataclass

from dss_core.errors import NotAJetStreamMessage

V1_TOKENS = 9
V2_TOKENS = 11

DIGITS_MAX = 20
"""Of a number of 64 bits, without zeros before it."""

_NUMBER_END = 1 << 64
_DIGITS = re.compile("[0-9]+")
_NUMBERS = ("num_delivered", "stream_seq", "consumer_seq", "timestamp_ns", "num_pending")
NO_DOMAIN = "_"


@dataclass(frozen=True, slots=True)
class AckSubject:
    """What the reply subject of a message says."""

    stream: str
    consumer: str
    num_delivered: int
    stream_seq: int
    consumer_seq: int
    timestamp_ns: int
    """When the message was stored, nanoseconds since 1970."""
    num_pending: int
    domain: str | None = None
    """None in the older form, empty where there is none."""
    account: str | None = None
    more: tuple[str, ...] = ()
    """Further tokens, which have no defined meaning."""

    @classmethod
    def parse(cls, reply: str | None) -> "AckSubject":
        """Read a reply subject.

        Raises:
            NotAJetStreamMessage: it is none that JetStream forms.
        """
        if not reply:
            raise NotAJetStreamMessage(reply="An empty reply", rule="the message has no reply")
        tokens = reply.split(".")
        if tokens[:2] != ["$JS", "ACK"]:
            raise NotAJetStreamMessage(reply=reply, rule="it does not begin with $JS.ACK")
        if len(tokens) == V1_TOKENS:
            return cls._of(reply, tokens[2:])
        if len(tokens) < V2_TOKENS:
            raise NotAJetStreamMessage(reply=reply, rule=f"it has {len(tokens)} tokens")
        domain, account, *rest = tokens[2:]
        domain = "" if domain == NO_DOMAIN else domain
        return cls._of(reply, rest[:7], domain, account, tuple(rest[7:]))

    @classmethod
    def _of(
        cls,
        reply: str,
        tokens: list[str],
        domain: str | None = None,
        account: str | None = None,
        more: tuple[str, ...] = (),
    ) -> "AckSubject":
        stream, consumer, *digits = tokens
        if not stream or not consumer:
            raise NotAJetStreamMessage(reply=reply, rule="stream or consumer is empty")
        pairs = zip(_NUMBERS, digits, strict=True)
        numbers = {name: _number(reply, name, text) for name, text in pairs}
        return cls(stream, consumer, **numbers, domain=domain, account=account, more=more)

    def __str__(self) -> str:
        """The subject; that of `parse`, but for zeros before a number."""
        head = ["$JS", "ACK"]
        if self.domain is not None:
            head += [self.domain or NO_DOMAIN, self.account or NO_DOMAIN]
        numbers = [str(getattr(self, name)) for name in _NUMBERS]
        return ".".join([*head, self.stream, self.consumer, *numbers, *self.more])


def _number(reply: str, name: str, text: str) -> int:
    # `int` would take signs, spaces, underscores and digits of other scripts, and time that grows
    # with the square of how many digits there are.
    digits = text.lstrip("0") or "0" if _DIGITS.fullmatch(text) else ""
    if not digits or len(digits) > DIGITS_MAX or int(digits) >= _NUMBER_END:
        raise NotAJetStreamMessage(reply=reply, rule=f"{name} {text!r} is no number of 64 bits")
    return int(digits)
