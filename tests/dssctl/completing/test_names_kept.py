"""Names that lists keep, and what is answered from them."""

import os
import sys
import time
from pathlib import Path

import pytest

from dssctl.completing import answering
from dssctl.completing.answering import NAMES_FRESH_S, NAMES_OLD_S
from dssctl.completing.listed_names import remember
from dssctl.completing.names_kept import file_for, folder_for, keep, kept
from dssctl.nouns.groups import GROUP_KIND
from dssctl.nouns.topics import TOPIC_KIND

AWAY = ("--endpoint", "unix:/nowhere/s")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for variable in ("DSSCTL_ENDPOINT", "DSSCTL_CONTEXT", "DSSCTL_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The processes that were begun, in place of processes."""
    begun: list[list[str]] = []

    def began(_path: str, arguments: list[str], *_: object, **_others: object) -> int:
        begun.append(arguments)
        return 0

    monkeypatch.setattr(os, "posix_spawn", began)
    monkeypatch.setattr(os, "waitpid", lambda *_: (1, 0))
    return begun


def folder(*words: str) -> str:
    return folder_for(words, os.environ)


def answered(kind: str, prefix: str, *line: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    assert answering.answer([kind, prefix, *line]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return [line.partition("\t")[0] for line in out.splitlines()]


def age(kind: str, by_s: float) -> None:
    then = time.time() - by_s
    os.utime(file_for(folder(), kind), (then, then))


def test_fresh_names_are_answered_by_their_beginning_and_nobody_is_asked(
    listed: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder(), "groups", [("billing", "orders/#"), ("audit", "")])
    assert answered("groups", "b", capfd=capfd) == ["billing"]
    assert answered("groups", "", capfd=capfd) == ["billing", "audit"]
    assert listed == []


def test_old_names_are_answered_at_once_and_asked_for_once(
    listed: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder(), "groups", [("billing", "")])
    age("groups", NAMES_FRESH_S + 1)
    for _ in range(3):
        assert answered("groups", "b", capfd=capfd) == ["billing"]
    (command,) = listed
    assert command[1:5] == ["-m", "dssctl", "groups", "ls"]


def test_names_of_another_day_are_not_answered(
    listed: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder(), "topics", [("orders", "")])
    age("topics", NAMES_OLD_S + 1)
    assert answered("topics", "", capfd=capfd) == []
    assert len(listed) == 1


def test_names_kept_before_the_configuration_changed_are_not_answered(
    listed: list[list[str]], cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder(), "topics", [("orders", "")])
    age("topics", 2)
    (cache / "config/dssctl").mkdir(parents=True)
    (cache / "config/dssctl/config.toml").touch()
    assert answered("topics", "", capfd=capfd) == []
    assert len(listed) == 1


def test_each_daemon_has_names_of_its_own(
    listed: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder("--endpoint", "a:1"), "topics", [("orders", "")])
    keep(folder("--endpoint=b:1"), "topics", [("bills", "")])
    assert answered("topics", "", "topics", "--endpoint=b:1", "rm", capfd=capfd) == ["bills"]
    assert answered("topics", "", "--endpoint", "a:1", capfd=capfd) == ["orders"]
    assert answered("topics", "", capfd=capfd) == []
    (command,) = listed
    assert "--endpoint" not in command


def test_the_list_is_asked_of_the_daemon_that_the_line_names(listed: list[list[str]]) -> None:
    answering.answer(["topics", "", "topics", *AWAY, "rm", ""])
    (command,) = listed
    assert command[command.index("ls") + 1 :][:2] == list(AWAY)


@pytest.mark.parametrize(
    "name", ["$(reboot)", "a b", "`x`", "a;b", "*", "-rf", "\x1b[31m", "naïve", "", "a\tb", "a\nb"]
)
def test_a_name_that_a_shell_or_a_terminal_may_read_otherwise_is_left_out(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(folder(), "topics", [(name, ""), ("orders", "")])
    assert answered("topics", "", capfd=capfd) == ["orders"]


def test_what_somebody_else_wrote_into_the_cache_is_not_passed_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    keep(folder(), "topics", [("orders", "")])
    Path(file_for(folder(), "topics")).write_text("orders\n$(x)\ta\nbills\t\x1b[31m\n")
    assert answered("topics", "", capfd=capfd) == ["orders"]


def test_words_about_a_name_are_safe_too() -> None:
    keep(folder(), "groups", [("billing", "$(x) \x1b`orders/#")])
    assert kept(folder(), "groups") == ["billing\tx    orders/#"]


@pytest.mark.parametrize(
    "words", [[], ["groups"], ["nothing", ""], ["../../x", ""], ["groups", "`"]]
)
def test_a_wrong_question_has_no_answer_and_no_error(
    words: list[str], listed: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert answering.answer(words) == 0
    assert capfd.readouterr() == ("", "")


def test_a_cache_that_cannot_be_written_is_none(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    keep(folder(), "groups", [("billing", "")])
    assert answered("groups", "", capfd=capfd) == []


def test_a_group_is_kept_by_its_name_where_only_one_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["dssctl", "groups", "ls"])
    names = [("a", "orders/eu"), ("a", "orders/us"), ("b", "orders/#")]
    remember("groups", GROUP_KIND, [{"name": name, "filter": each} for name, each in names])
    lines = [line.partition("\t")[0] for line in kept(folder(), "groups")]
    assert lines == ["a@orders/eu", "a@orders/us", "b"]


def test_a_list_of_topics_keeps_their_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["dssctl", "topics", "ls"])
    remember("topics", TOPIC_KIND, [{"name": "orders", "partitions": 2, "produce_ordinal": 1}])
    assert kept(folder(), "streams") == ["orders/1/0", "orders/1/1"]
