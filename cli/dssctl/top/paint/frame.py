"""The frame of every screen: the daemon's state, alerts, and the latest event.

Invariant: three lines above and three below, whatever is shown between them.
"""

from collections import Counter
from typing import NamedTuple

from dss_core.counted import counted
from dssctl.output.escape import escaped
from dssctl.top.model.picture import Picture
from dssctl.top.model.standing import STUCK, look_of, word_of
from dssctl.top.model.trends import direction
from dssctl.top.paint import amounts
from dssctl.top.paint.charts import bars
from dssctl.top.paint.glyphs import Glyphs
from dssctl.top.paint.spans import EMPTY, Line, Look, Span, beside, cut, fitted, line, width_of

HEADING_LINES = 3


class Badge(NamedTuple):
    """The mode of this dashboard."""

    endpoint: str
    context: str = ""
    """The named target; empty where there is none."""
    read_only: bool = False
    protected: bool = False
    """A change needs a reason, and the name of its subject typed."""
    frozen: bool = False
    """The picture is frozen."""
    recording: bool = False
    replayed: str = ""
    """The time in the recording; empty if it is none."""


def heading(picture: Picture, badge: Badge, width: int, glyphs: Glyphs) -> tuple[Line, ...]:
    """The daemon, the total rates, and the alerts."""
    more = glyphs.more
    return (
        beside(_who(picture, badge, glyphs), _when(picture, badge), width, more),
        fitted(_flow(picture, width, glyphs), width, more),
        fitted(_alerts(picture, width, glyphs), width, more),
    )


def _who(picture: Picture, badge: Badge, glyphs: Glyphs) -> Line:
    status = picture.status
    live: Span = Span(f" {glyphs.live} ", "good")
    if picture.away or not picture.complete:
        live = Span(f" {glyphs.away} ", "bad" if picture.away else "warn")
    spans: list[str | Span] = [live]
    if badge.replayed:
        spans += [Span("RECORDING ", "warn"), f"{badge.replayed}  "]
    spans.append(Span(f"dssd {escaped(status.version)}  " if status else "dssd  ", "strong"))
    if badge.context:
        spans += [Span(escaped(badge.context), "accent"), "  "]
    if badge.read_only:
        spans += [Span("READ-ONLY", "warn"), "  "]
    elif badge.protected:
        spans += [Span("PROTECTED", "warn"), "  "]
    if badge.frozen:
        spans += [Span("FROZEN", "warn"), "  "]
    if badge.recording:
        spans += [Span("REC", "bad"), "  "]
    spans.append(f"{counted(len(picture.items.groups), 'group')}  ")
    if status:
        spans += [
            f"{counted(status.topics, 'topic')}  {counted(status.sessions, 'session')}  ",
            f"up {amounts.age(status.started_at_ms, picture.now_ms)}  ",
        ]
    spans.append(Span(escaped(badge.endpoint), "dim"))
    return line(*spans)


def _when(picture: Picture, _badge: Badge) -> Line:
    return line(f" {amounts.clock(picture.now_ms)}Z " if picture.now_ms else "")


def _flow(picture: Picture, width: int, glyphs: Glyphs) -> Line:
    total, status = picture.total, picture.status
    room = 10 if width < 120 else 20
    last = total[-1] if total else None
    sign = {1: glyphs.up, 0: glyphs.level, -1: glyphs.down}[direction(total)]
    spans: list[str | Span] = [
        Span(" arriving ", "dim"),
        f"{amounts.rate(last.arrivals if last else 0)}/s ",
        Span(bars([each.arrivals for each in total], room, glyphs), "accent"),
        Span("  acked ", "dim"),
        f"{amounts.rate(last.acks if last else 0)}/s ",
        Span(bars([each.acks for each in total], room, glyphs), "accent"),
        Span("  lag ", "dim"),
        f"{amounts.count(last.lag if last else 0)}{sign} ",
        Span(bars([float(each.lag) for each in total], room, glyphs), "accent"),
    ]
    if status:
        log, free = amounts.size(status.log_bytes), amounts.size(status.disk_free_bytes)
        for label, amount in (("  log ", log), ("  disk free ", free)):
            if width_of(line(*spans, label, amount)) <= width:
                spans += [Span(label, "dim"), amount]
    return line(*spans)


def _alerts(picture: Picture, width: int, glyphs: Glyphs) -> Line:
    """The alerts, the worst first; or that nothing is wrong."""
    if picture.away:
        away = picture.away
        since = f"{amounts.clock(away.since_ms)}Z, for {amounts.age(away.since_ms, picture.now_ms)}"
        reason = f": {escaped(away.reason)}" if away.reason else ""
        return line(Span(f" {glyphs.bad} the daemon is away since {since}{reason}", "bad"))
    if not picture.complete:
        return line(Span(" waiting for the daemon", "warn"))
    found = [*_alerts_of_groups(picture), *_alerts_of_findings(picture)]
    if not found:
        return line(Span(f" {glyphs.good} nothing is wrong", "good"))
    # If there are several, a long one leaves room for the others.
    room = width if len(found) == 1 else max(_ALERT_PLACES, width // len(found))
    spans: list[str | Span] = []
    for text, look in sorted(found, key=lambda each: each[1] != "bad"):
        spans.append(Span(cut(f" {glyphs.bad} {text} ", room, glyphs.more), look))
    return line(*spans)


_ALERT_PLACES = 30
"""The least width of an alert: enough to know what it is about."""


def _alerts_of_groups(picture: Picture) -> list[tuple[str, Look]]:
    """Alerts of the shown groups, by their verdicts; a group that only falls behind is a
    finding."""
    every = picture.items.groups.values()
    counts = Counter((word_of(each), look_of(each)) for each in every if each.health != "healthy")
    return [
        (f"{counted(number, 'group')} {word}{': see :stuck' if word == STUCK else ''}", look)
        for (word, look), number in counts.items()
        if word in _TOLD
    ]


_TOLD = (STUCK, "stalled", "rebalancing", "paused")


def _alerts_of_findings(picture: Picture) -> list[tuple[str, Look]]:
    wrong = (each for each in picture.found if each.level != "healthy")
    return [
        (escaped(each.sentence), "bad" if each.level == "problem" else "warn")
        for each in wrong
        if each.code != "groups.stuck"
    ]


def news(picture: Picture, width: int, glyphs: Glyphs) -> Line:
    """The newest event."""
    if not picture.events:
        return fitted(EMPTY, width, glyphs.more)
    event = picture.events[-1]
    look: Look = {"error": "bad", "warning": "warn"}.get(event.severity, "dim")  # type: ignore[assignment]
    text = line(
        Span(f" {amounts.clock(event.last_at_ms)} ", "dim"),
        Span(f"{event.severity.upper()} ", look),
        f"{escaped(event.subject)}: {escaped(event.sentence)}",
    )
    return fitted(text, width, glyphs.more)


def hints(pairs: "list[tuple[str, str]]", width: int, glyphs: Glyphs) -> Line:
    """Keys and what they do, as many as there is room for."""
    spans: list[str | Span] = []
    for key, label in pairs:
        piece = (Span(f" {key}", "key"), Span(f" {label} ", "dim"))
        if width_of(line(*spans, *piece)) > width:
            break
        spans += piece
    return fitted(line(*spans), width, glyphs.more)


def trail(titles: list[str], right: str, width: int, glyphs: Glyphs) -> Line:
    """The titles of the way to here."""
    shown = glyphs.between.join(escaped(title) for title in titles)
    return beside(
        line(" ", Span(shown, "strong")), line(Span(f"{right} ", "dim")), width, glyphs.more
    )
