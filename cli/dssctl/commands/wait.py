"""``dssctl wait``: waits until something is in a given state."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import IllegalArgument, OperationNotDone, StillWaiting
from dss_core.times import text_of_span
from dssctl.advice import outages_noted
from dssctl.awaited.conditions import WORDS, Condition, Picture, conditions_of
from dssctl.awaited.pictures import (
    Pictures,
    daemon_pictures,
    group_pictures,
    operation_pictures,
    session_pictures,
)
from dssctl.connection import connected, require_daemon
from dssctl.output import Column, Item, Kind, note, show_one
from dssctl.progress import lingering
from dssctl.settings import Settings
from dssctl.tree import settings_of, showing, verb_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dss_client import Client

app = verb_alone("wait")

WAITED_KIND = Kind(
    "Waited",
    (
        Column("subject", "WAITED-FOR"),
        Column("conditions", "UNTIL"),
        Column("waited_ms", "TOOK", cell=lambda item, _now_us: _took(item)),
        Column("now", "NOW"),
    ),
    lambda item: str(item["subject"]),
)
_KINDS = {"operation": "op", "operations": "op", "ops": "op"}


@app.command(cls=showing(WAITED_KIND))
def wait(
    context: typer.Context,
    subject: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="group/billing, op/57, session/ID, daemon.")
    ],
    conditions: Annotated[
        list[str],
        typer.Option(
            "--for",
            metavar="CONDITION",
            help="lag=0, retrying=0, dead=0, members>=3, oldest<5m, streams-moved, gone; done; "
            "connected; ready; all hold where several are given.",
        ),
    ],
) -> None:
    """Wait until a group, a session, an operation or the daemon is in a given state.

    It exits with 4 where that is not so within --timeout, 5m where absent.
    """
    settings = settings_of(context)
    kind, name = _kind_and_name(subject)
    waiting = _Waiting(settings, kind, name, conditions_of(kind, conditions))
    with outages_noted(settings):
        took_ms = waiting.run()
    _note_what_failed(settings, waiting.conditions, waiting.picture)
    item: Item = {
        "subject": subject,
        "conditions": list(dict.fromkeys(each.text for each in waiting.conditions)),
        "waited_ms": took_ms,
        "now": dict(waiting.picture) if waiting.picture is not None else None,
    }
    show_one(settings, WAITED_KIND, item)


def _note_what_failed(
    settings: Settings, conditions: "Sequence[Condition]", picture: Picture | None
) -> None:
    """Note failed records after waiting for a lag: no lag counts them."""
    fields = {each.field for each in conditions}
    if picture is None or "lag" not in fields:
        return
    left = [each for each in ("retrying", "dead") if picture[each] and each not in fields]
    if left:
        counts = " and ".join(f"{picture[each]:,} {each}" for each in left)
        wanted = ",".join(f"{each}=0" for each in left)
        note(settings, f"no lag counts what failed: {counts}; wait for them too: --for {wanted}")


@dataclass(slots=True)
class _Waiting:
    """One run."""

    settings: Settings
    kind: str
    name: str
    conditions: tuple[Condition, ...]
    picture: Picture | None = None
    seen: bool = field(default=False)
    """The watch reported something."""

    def run(self) -> int:
        """Wait; returns how long it took, in milliseconds.

        Raises:
            StillWaiting: the condition did not hold in time.
            OperationNotDone: the operation ended otherwise.
            DssError: the thing does not exist, or there is no daemon.
        """
        began_at = time.monotonic()
        title = f"{self.kind}/{self.name}" if self.name else self.kind
        with lingering(self.settings, f"waiting for {title}") as show:
            try:
                asyncio.run(self._in_time(show))
            except TimeoutError as late:
                raise StillWaiting(
                    subject=title,
                    seconds=f"{self.settings.wait_s:g}",
                    wanted=", ".join(each.text for each in self.conditions),
                    now=self._now(),
                ) from late
        return round((time.monotonic() - began_at) * 1_000)

    async def _in_time(self, show: "Callable[[str], None]") -> None:
        async with asyncio.timeout(self.settings.wait_s), connected(self.settings) as client:
            if self.kind != "daemon":
                await require_daemon(client, self.settings)
            async with aclosing(self._pictures(client)) as pictures:
                async for picture in pictures:
                    self.picture, self.seen = picture, True
                    if all(each.holds(picture) for each in self.conditions):
                        return
                    show(self._now())
        # Only an operation has a last picture.
        assert self.picture is not None
        why = f"it was to be {', '.join(each.text for each in self.conditions)}"
        raise OperationNotDone(
            number=self.name, kind="operation", state=self.picture["state"], why=why
        )

    def _pictures(self, client: "Client") -> Pictures:
        match self.kind:
            case "group":
                return group_pictures(client, self.name, self.conditions)
            case "session":
                return session_pictures(client, self.name)
            case "op":
                return operation_pictures(client, int(self.name))
            case _:
                return daemon_pictures(client)

    def _now(self) -> str:
        if not self.seen:
            return "nothing was heard of it"
        missing = (each for each in self.conditions if not each.holds(self.picture))
        return ", ".join(dict.fromkeys(each.is_now(self.picture, self.kind) for each in missing))


def _kind_and_name(subject: str) -> tuple[str, str]:
    kind, _, name = subject.partition("/")
    kind = _KINDS.get(kind, kind.removesuffix("s"))
    if kind not in WORDS:
        rule = f"it is KIND/NAME; kinds are {', '.join(WORDS)}"
        raise IllegalArgument(argument=subject, rule=rule)
    if (kind == "daemon") is bool(name):
        rule = "it is daemon alone" if kind == "daemon" else f"it is {kind}/NAME"
        raise IllegalArgument(argument=subject, rule=rule)
    if kind == "op" and not (name.isascii() and name.isdigit()):
        raise IllegalArgument(argument=subject, rule="it is op/NUMBER; see dssctl ops ls")
    return kind, name


def _took(item: Item) -> str:
    waited_ms = item["waited_ms"]
    assert isinstance(waited_ms, int)
    return text_of_span(waited_ms) if waited_ms else "0s"
