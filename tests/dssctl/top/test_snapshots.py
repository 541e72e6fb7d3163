"""The dashboard as it is seen: pictures of it, kept beside this file.

`UPDATE_PICTURES=1 pytest tests/dssctl/top/test_snapshots.py` draws them anew; a change of one is
looked at like any other change.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dssctl.top.model.answers import Answer, LogLine
from dssctl.top.model.picture import Lost
from dssctl.top.model.places import Place
from dssctl.top.paint.frame import Badge
from dssctl.top.paint.glyphs import ASCII, FULL, Glyphs
from support.dashboard_items import NOW_MS, busy, chunk, dead_letters
from support.played_dashboard import Played, Seen, played

PICTURES = Path(__file__).parent / "pictures"
DOCUMENTS = Path(__file__).resolve().parents[3] / "docs/pictures"
SMALL, LARGE = (80, 24), (160, 45)
UPDATE = "UPDATE_PICTURES"


@dataclass(frozen=True, slots=True)
class Shot:
    """How a picture is taken."""

    size: tuple[int, int] = SMALL
    keys: tuple[str, ...] = ()
    badge: Badge = field(default_factory=lambda: Badge("unix:/run/dssd.sock"))
    theme: str = "dark"
    glyphs: Glyphs = FULL
    source: Callable[[], Played] = lambda: Played(busy())
    no_color: bool = False


def _away() -> Played:
    return Played([*busy(), Lost(NOW_MS - 12_000, "No daemon answers at unix:/run/dssd.sock.")])


def _looked_at() -> Played:
    source = Played(busy())
    chunks = tuple(chunk(n, (0 if n == 3 else 10_000) if n < 16 else None) for n in range(40))
    told = ((50, "daemon", "job.begun: it is driven"), (5, "driver", "published 16, chunks 40"))
    log = tuple(LogLine(NOW_MS - before * 1_000, by, text) for before, by, text in told)
    source.answers["job"] = Answer(Place("job"), chunks=chunks, log=log)
    return source


def _failed() -> Played:
    source = Played(busy())
    errors, keys, entries = dead_letters()
    asked = Place("dead", group="billing@orders/#")
    source.answers["dead"] = Answer(asked, errors=errors, keys=keys)
    for question in ("dead-records", "dead-letter"):
        source.answers[question] = Answer(asked, entries=entries)
    return source


def _dead(*keys: str) -> tuple[str, ...]:
    return ("colon", *"dead", "space", *"billing", "enter", *keys)


def _jobs(*keys: str) -> tuple[str, ...]:
    return ("colon", *"jobs", "enter", *keys)


def _groups(*keys: str) -> tuple[str, ...]:
    return ("colon", *"groups", "enter", *keys)


SHOTS = {
    "pulse-small": Shot(),
    "pulse-large": Shot(LARGE),
    "pulse-large-light": Shot(LARGE, theme="light"),
    "groups-small-filtered": Shot(keys=_groups("slash", *"lag>50", "enter", "down")),
    "groups-large": Shot(LARGE, _groups()),
    "group-small": Shot(keys=_groups("enter")),
    "group-large": Shot(LARGE, _groups("enter")),
    "group-small-ascii": Shot(keys=_groups("enter"), glyphs=ASCII),
    "members-small-light": Shot(keys=_groups("enter", "2"), theme="light"),
    "operations-small-no-color": Shot(keys=("colon", *"ops", "enter"), no_color=True),
    "schedules-small": Shot(keys=("colon", *"schedules", "enter")),
    "dead-small": Shot(keys=_dead(), source=_failed),
    "dead-large": Shot(LARGE, _dead(), source=_failed),
    "dead-keys-small": Shot(keys=_dead("enter"), source=_failed),
    "dead-records-large": Shot(LARGE, _dead("enter", "enter"), source=_failed),
    "dead-letter-small": Shot(keys=_dead("enter", "enter", "enter"), source=_failed),
    "redrive-small": Shot(keys=_dead("D", "enter"), source=_failed),
    "jobs-small": Shot(keys=_jobs()),
    "job-small": Shot(keys=_jobs("enter"), source=_looked_at),
    "job-large": Shot(LARGE, _jobs("enter", "2"), source=_looked_at),
    "topics-small-read-only": Shot(
        keys=("colon", *"topics", "enter"), badge=Badge("10.0.0.7:7070", read_only=True)
    ),
    "actions-small": Shot(keys=_groups("a")),
    "confirm-small": Shot(keys=_groups("P")),
    "confirm-large-typed": Shot(LARGE, _groups("X", "shift+tab", *"payments-settle")),
    "ask-small": Shot(keys=_groups("W")),
    "help-small": Shot(keys=("question_mark",)),
    "away-small": Shot(source=_away),
    "empty-small": Shot(source=lambda: Played([])),
}


@pytest.mark.parametrize("name", SHOTS)
async def test_it_looks_as_it_did(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shot = SHOTS[name]
    monkeypatch.delenv("NO_COLOR", raising=False)
    if shot.no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    async with played(shot.source(), shot.size, shot.badge, shot.theme, glyphs=shot.glyphs) as (
        dashboard,
        pilot,
    ):
        await taken(dashboard, pilot, shot.keys)
        compare(name, plain(dashboard.export_screenshot(title="dssctl top")))


async def taken(dashboard: Seen, pilot: Pilot[None], keys: tuple[str, ...]) -> None:
    """Press the keys; what that asks for is answered and shown, and nothing moves any more."""
    await answered(dashboard, pilot)
    for key in keys:
        await pilot.press(key)
        if key == "enter":
            await answered(dashboard, pilot)
    await answered(dashboard, pilot)


async def answered(dashboard: Seen, pilot: Pilot[None]) -> None:
    """What is asked where one is has its answer, and is shown."""
    while dashboard.view.tab.question is not None and dashboard.view.answer is None:
        await pilot.pause()
    dashboard.now()
    await pilot.pause()


def plain(svg: str) -> str:
    """The picture without fonts from elsewhere, and the id of each run in all its names."""
    found = re.search(r'class="(terminal-\d+)-matrix"', svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace(found[1], "terminal") if found else svg


SHOWN = {"pulse-large": "top-large.svg", "group-small": "top-small.svg"}
"""In the README."""


def compare(name: str, svg: str) -> None:
    path = PICTURES / f"{name}.svg"
    if os.environ.get(UPDATE):
        PICTURES.mkdir(exist_ok=True)
        path.write_text(svg)
    if name in SHOWN and os.environ.get(UPDATE):
        (DOCUMENTS / SHOWN[name]).write_text(svg)
    if name in SHOWN:
        assert (DOCUMENTS / SHOWN[name]).read_text() == svg, f"{SHOWN[name]} is an older one"
    assert path.read_text() == svg, f"{path} shows something else; if it should: {UPDATE}=1"
