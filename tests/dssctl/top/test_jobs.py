"""Bulk jobs in the dashboard: how they went, why they stand still, their manifest as a picture."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dss_client.changes import CancelJob, PauseJob, RemoveJob, ResumeJob
from dssctl.top.lists.jobs import held_up, is_job_faulty, job_row, records_s
from dssctl.top.lists.listing import Pen
from dssctl.top.model.answers import Answer, LogLine
from dssctl.top.model.courses import coursed, left_ms, pace
from dssctl.top.model.picture import Picture, Ticked, step
from dssctl.top.model.places import Place
from dssctl.top.paint.glyphs import ASCII
from dssctl.top.paint.spans import text_of
from dssctl.top.panels.manifest import manifest_lines
from dssctl.top.stage.actions import action_of
from dssctl.top.stage.moves import MOVES, chosen
from dssctl.top.stage.sheet import sheet
from dssctl.top.stage.view import View, looked
from support.dashboard_items import NOW_MS, chunk, job, update

Viewed = Callable[..., View]
PEN = Pen(NOW_MS, ASCII)
PLACE = Place("job", name="eu-again")


def drawn(published: int, chunks: int, width: int = 40, height: int = 4, **fields: object) -> str:
    seen = job("j", published=published, chunks=chunks, **fields)
    lines = manifest_lines(seen, [chunk(0, 0), chunk(1, 5)], width, height, PEN)
    assert len(lines) == height
    return "\n".join(text_of(each) for each in lines).rstrip()


def test_the_pace_of_a_job_is_that_of_its_course() -> None:
    first, last = job("j", published=10, records=1_000), job("j", published=12, records=5_000)
    assert pace(coursed((), first, 0)) is None
    course = coursed(coursed((), first, 0), last, 4_000)
    went = pace(course)
    assert went is not None
    assert (went.chunks_s, went.records_s) == (0.5, 1_000.0)
    assert left_ms(last, went) == 56_000
    assert left_ms(replace(last, state="done"), went) is None
    assert left_ms(last, pace(coursed((), last, 0))) is None


def test_a_course_belongs_to_a_job_and_not_to_its_name(picture: Picture) -> None:
    now_ms = picture.now_ms
    known = step(picture, update(job("eu-again", job_id=99, published=0, records=0)))
    for second in range(1, 5):
        known = step(known, Ticked(now_ms + second * 1_000))
    went = pace(known.courses[99])
    assert went is not None
    assert went.records_s == 0
    assert set(known.courses) == {99, len("night")}, "one that has ended is not followed"


@pytest.mark.parametrize(
    ("fields", "reason", "faulty"),
    [
        ({}, "", False),
        ({"state": "paused"}, "paused", True),
        ({"driver_lives": False}, "silent: local engine, host7, pid 41", True),
        ({"driver_lives": False, "driver": ""}, "no driver yet", True),
        ({"said": '{"waits": "the disk is full"}'}, "the disk is full", True),
        ({"said": "no JSON"}, "", False),
        ({"rate_bytes_s": 1_000}, "its rate bound", False),
        ({"rate_bytes_s": 1 << 30}, "", False),
        ({"state": "failed", "failure": "the source was removed"}, "the source was removed", True),
        ({"state": "done", "driver_lives": False}, "", False),
    ],
)
def test_what_holds_a_job_up_is_said(fields: dict[str, object], reason: str, faulty: bool) -> None:
    seen = job("j", **fields)
    course = coursed(coursed((), replace(seen, bytes=0), 0), seen, 100_000)
    row = job_row(seen, course)
    assert (held_up(row), is_job_faulty(row)) == (reason, faulty)


def test_a_job_that_has_ended_has_the_rate_of_its_life() -> None:
    ended = job("j", state="done", records=3_000, created_at_ms=0, ended_at_ms=2_000)
    assert records_s(job_row(ended, ())) == "1500"


def test_the_manifest_is_a_sign_a_chunk_in_its_order() -> None:
    assert drawn(5, 12).splitlines() == [
        ":####+.. ....",
        "",
        "",
        "# published : without records + next . open",
    ]
    assert drawn(5, 12, state="failed").startswith(":####!..")
    assert drawn(5, 12, state="cancelled").startswith(":####...")
    assert drawn(12, 12, state="done").startswith(":####### ####\n")


def test_a_sign_stands_for_several_chunks_where_they_are_many() -> None:
    lines = drawn(4_096, 8_192).splitlines()
    assert lines[-1].endswith(", 86 chunks a sign")
    signs = "".join(lines[:-1]).replace(" ", "")
    assert len(signs) == 96
    assert signs.startswith("###")
    assert signs.count("+") == 1
    assert signs.endswith("...")


def test_what_is_asked_of_a_job_is_in_its_lists_and_panels(viewed: Viewed) -> None:
    said = (LogLine(NOW_MS, "driver", "published 16, chunks 40"),)
    answer = Answer(PLACE, chunks=(chunk(0, 9), chunk(1)), log=said, params='{"run": 7}')
    view = looked(replace(viewed(PLACE, (160, 45)), answer=answer))
    assert list(view.found.keys) == ["000000", "000001"]
    texts = "\n".join(text_of(each) for each in sheet(view).lines)
    assert "orders/0/0 12000..23999" in texts
    assert "published 16, chunks 40" in texts
    plan = MOVES["previous_tab"](view)
    texts = "\n".join(text_of(each) for each in sheet(plan).lines)
    assert '{"run": 7}' in texts
    assert "dssctl jobs wait eu-again" in texts


@pytest.mark.parametrize("place", [Place("jobs"), PLACE])
def test_a_job_is_paused_resumed_cancelled_and_forgotten_as_it_stands(
    viewed: Viewed, picture: Picture, place: Place
) -> None:
    def change(key: str, **fields: object) -> object:
        known = step(picture, update(job("eu-again", **fields)))
        spot = chosen(looked(replace(viewed(place), picture=known)), 0).chosen
        action = action_of(key, spot)
        assert spot is not None
        return None if action is None or action.change is None else action.change(spot, "")

    assert change("P") == PauseJob("eu-again")
    assert change("P", state="paused") == ResumeJob("eu-again")
    assert change("C", state="paused") == CancelJob("eu-again")
    assert change("X") is None
    assert change("X", state="done") == RemoveJob("eu-again")
    assert change("P", state="done") is None
    assert change("C", state="done") is None


def test_a_job_nobody_drives_is_an_alert_and_its_events_are_a_key_away(viewed: Viewed) -> None:
    lines = [text_of(each) for each in sheet(viewed(size=(160, 45))).lines]
    assert "Nobody drives night for 23h50m" in lines[2]
    for place in (Place("jobs"), PLACE):
        assert MOVES["events"](viewed(place)).here.place == Place("events", name="eu-again")
