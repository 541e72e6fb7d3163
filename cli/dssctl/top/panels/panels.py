"""The panels of the screens.

Invariant: as for every panel: exactly the lines and the width that it was asked for.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dssctl.forecast import forecast_text
from dssctl.output.escape import escaped
from dssctl.top.limits import LARGE_COLUMNS
from dssctl.top.lists.catalogue import TOPICS
from dssctl.top.lists.groups import (
    GROUPS,
    GroupRow,
    group_rows,
    lag_text,
    state_look,
)
from dssctl.top.lists.history import EVENTS, OPERATIONS
from dssctl.top.lists.jobs import (
    LOG,
    JobRow,
    bound,
    driver,
    held_up,
    job_facts,
    job_look,
    left,
    progress,
    records_s,
    row_at,
)
from dssctl.top.lists.listing import Pen, Scene, facts_of
from dssctl.top.lists.streams import STREAMS, stream_rows
from dssctl.top.paint import amounts
from dssctl.top.paint.charts import gauge
from dssctl.top.paint.spans import Line, Span, joined, line, said
from dssctl.top.panels.blocks import (
    box,
    facts_block,
    facts_in_two,
    filled,
    indented,
    lag_block,
    rates_block,
    rows_block,
)
from dssctl.top.panels.heatmap import heat_lines
from dssctl.top.panels.manifest import manifest_lines

if TYPE_CHECKING:
    from dss_client import DaemonStatus

_CHART_PLACES = 34
"""The width of a chart beside text on a small terminal."""


def pulse(scene: Scene, width: int, height: int) -> Sequence[Line]:
    """The whole daemon: rates, lag, and its resources."""
    total, pen = scene.picture.total, scene.pen
    if width < LARGE_COLUMNS:
        left = (width - 4) // 2
        blocks = [
            rates_block(total, left, height, pen),
            lag_block(total, width - 4 - left, height, pen),
        ]
        return indented(joined(blocks, "  "))
    third = width // 3
    rest = width - 2 * third
    return joined(
        [
            box(line(Span("Rates", "strong")), rates_block(total, third - 4, height - 2, pen),
                third, height, pen),
            box(line(Span("Lag", "strong")), lag_block(total, third - 4, height - 2, pen),
                third, height, pen),
            box(line(Span("Daemon", "strong")),
                facts_block(_daemon_facts(scene.picture.status, pen), rest - 4, height - 2, pen),
                rest, height, pen),
        ]
    )  # fmt: skip


def _daemon_facts(status: "DaemonStatus | None", pen: Pen) -> list[tuple[str, str]]:
    if status is None:
        return [("state", "not known yet")]
    held = status.held
    in_delivery_max = amounts.size(held.delivery_bytes_max)
    return [
        ("state", " ".join(filter(None, (status.state, escaped(status.state_reason))))),
        ("connections", _held(held.connections, held.connections_max, pen)),
        ("calls", _held(held.calls, held.calls_max, pen)),
        ("in delivery", f"{amounts.size(held.delivery_bytes)} of {in_delivery_max}"),
        ("sessions", f"{status.sessions} connected, {status.sessions_waiting} away"),
        ("log", f"{amounts.size(status.log_bytes)} in {counted(status.streams, 'stream')}"),
        ("disk free", amounts.size(status.disk_free_bytes)),
    ]  # fmt: skip


def _held(held: int, most: int, pen: Pen) -> str:
    share = held / most if most else 0.0
    return f"{gauge(share, 10, pen.glyphs)} {held} of {amounts.count(most)}"


def news_below(scene: Scene, width: int, height: int) -> Sequence[Line]:
    """Operations and events."""
    pen = scene.pen
    if width < LARGE_COLUMNS:
        block = rows_block(EVENTS, scene, width - 4, height - 2)
        return box(line(Span("Events", "strong")), block, width, height, pen)
    left = width // 3
    right = width - left
    return joined(
        [
            box(line(Span("Operations", "strong")),
                rows_block(OPERATIONS, scene, left - 4, height - 2), left, height, pen),
            box(line(Span("Events", "strong")),
                rows_block(EVENTS, scene, right - 4, height - 2), right, height, pen),
        ]
    )  # fmt: skip


def group(scene: Scene, width: int, height: int) -> Sequence[Line]:
    """One group: its state, its rates, its streams by heat."""
    pen = scene.pen
    row = group_rows(scene).get(scene.place.group)
    if row is None:
        gone = "this group is not there" if scene.picture.complete else "waiting for the daemon"
        return filled([line(Span(gone, "warn"))], width, height, pen)
    streams = list(stream_rows(scene).values())
    if width < LARGE_COLUMNS:
        left = width - _CHART_PLACES - 4
        facts = _group_lines(row, pen)
        heated = heat_lines(streams, left, height - len(facts), pen)
        blocks = [
            filled([*facts, *heated], left, height, pen),
            rates_block(row.trend, _CHART_PLACES, height, pen),
        ]
        return indented(joined(blocks, "  "))
    third = width // 3
    rest = width - 2 * third
    inner = height - 2
    charts = [
        *rates_block(row.trend, third - 4, inner - inner // 3, pen),
        *lag_block(row.trend, third - 4, inner // 3, pen),
    ]
    return joined(
        [
            box(line(said(row.key, "strong")),
                facts_block(facts_of(GROUPS, row, pen), rest - 4, inner, pen), rest, height, pen),
            box(line(Span("Rates and lag", "strong")), charts, third, height, pen),
            box(line(Span("Streams by lag", "strong")),
                heat_lines(streams, third - 4, inner, pen), third, height, pen),
        ]
    )  # fmt: skip


def _group_lines(row: GroupRow, pen: Pen) -> list[Line]:
    """The facts that fit a small terminal."""
    group = row.group
    oldest_ms = None if group.oldest_unacked_us is None else group.oldest_unacked_us // 1_000
    reason = [line(said(row.reason, state_look(row)))] if row.reason else []
    return [
        line(Span(row.state, state_look(row)),
            Span("  members ", "dim"), str(group.borrowers), Span("  streams ", "dim"),
            str(group.streams), Span("  epoch ", "dim"), str(group.leader_epoch)),
        line(Span("lag ", "dim"), lag_text(group, row.trend, pen), Span(" oldest ", "dim"),
            amounts.age(oldest_ms, pen.now_ms), Span("  drained in ", "dim"),
            forecast_text(row.drained_ms)),
        *reason,
    ]  # fmt: skip


def stream(scene: Scene, width: int, height: int) -> Sequence[Line]:
    """One stream: its holder in the group, and why its floor stands."""
    row = stream_rows(scene).get(scene.place.stream) if scene.place.group else None
    if row is None:
        facts = [("stream", escaped(scene.place.stream)), ("group", "read without one")]
        return indented(facts_block(facts, width - 2, height, scene.pen))
    facts_of_stream = [("group", escaped(row.group)), *facts_of(STREAMS, row, scene.pen)]
    return indented(facts_in_two(facts_of_stream, width - 2, height, scene.pen))


def topic(scene: Scene, width: int, height: int) -> Sequence[Line]:
    """One topic."""
    row = scene.picture.topics.get(scene.place.name)
    if row is None:
        return filled([line(Span("this topic is not there", "bad"))], width, height, scene.pen)
    return indented(facts_in_two(facts_of(TOPICS, row, scene.pen), width - 2, height, scene.pen))


def job(scene: Scene, width: int, height: int) -> Sequence[Line]:
    """One bulk job: its state, and its manifest as a picture."""
    pen, row = scene.pen, row_at(scene)
    if row is None:
        gone = "this job is not there" if scene.picture.complete else "waiting for the daemon"
        return filled([line(Span(gone, "warn"))], width, height, pen)
    chunks = scene.answer.chunks if scene.answer else ()
    if width < LARGE_COLUMNS:
        facts = _job_lines(row, pen)
        inner = width - 2
        pictured = manifest_lines(row.job, chunks, inner, height - len(facts), pen)
        return indented(filled([*facts, *pictured], inner, height, pen))
    third = width // 3
    rest = width - third
    pictured = manifest_lines(row.job, chunks, rest - 4, height - 2, pen)
    return joined(
        [
            box(line(Span("Job", "strong")),
                facts_block(job_facts(row, pen), third - 4, height - 2, pen), third, height, pen),
            box(line(Span("Chunks", "strong")), pictured, rest, height, pen),
        ]
    )  # fmt: skip


def _job_lines(row: JobRow, pen: Pen) -> list[Line]:
    """A job in three lines."""
    job = row.job
    reason = held_up(row)
    return [
        line(Span(job.state, job_look(job)), Span("  chunks ", "dim"),
            progress(row, _BAR_PLACES, pen),
            Span("  records/s ", "dim"), records_s(row),
            Span("  done in ", "dim"), left(row)),
        line(Span("driver ", "dim"), driver(job), Span("  rate bound ", "dim"), bound(job)),
        line(Span("held up by ", "dim"), said(reason or "nothing", "warn" if reason else "")),
    ]  # fmt: skip


_BAR_PLACES = 20


def log_below(scene: Scene, width: int, height: int) -> Sequence[Line]:
    """The latest lines of a job's log."""
    block = rows_block(LOG, scene, width - 4, height - 2)
    return box(line(Span("Said last", "strong")), block, width, height, scene.pen)
