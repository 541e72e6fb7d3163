"""Which items a listing shows, and as which columns."""

import pytest

from dss_core.errors import FilterUnreadable, OrderUnreadable, WrongUsage
from dssctl.output import Column, Instant, Item, Kind
from dssctl.selection import ListRules, Selection, Wanted
from dssctl.settings import Format, ListOptions, Settings

NOW_US = 1_795_000_000_000_000

KIND = Kind(
    "Session",
    (
        Column("client_id", "CLIENT"),
        Column("state", "STATE"),
        Column("since", "SINCE"),
        Column("subscriptions", "SUBSCRIPTIONS", right=True, wide=True),
        Column("peer", "PEER", only_csv=True),
    ),
    lambda item: str(item["client_id"]),
)


def session(name: str, subscriptions: int, since_s: int, peer: str | None = None) -> Item:
    since = Instant(NOW_US - since_s * 1_000_000)
    return {"client_id": name, "state": "away", "since": since, "subscriptions": subscriptions,
            "peer": peer}  # fmt: skip


ITEMS = [session("anna", 2, 60), session("bert", 9, 5), session("carl", 2, 3_600, "uds")]


def selection(
    rules: ListRules | None = None, output: Format = Format.TABLE, **options: object
) -> Selection:
    listing = ListOptions(**options)  # type: ignore[arg-type] # of ListOptions
    settings = Settings(format=output, listing=listing, clock_us=lambda: NOW_US)
    return Selection(settings, KIND, rules or ListRules())


def names(chosen: Selection) -> list[object]:
    return [item["client_id"] for item in chosen.of(ITEMS)]


def test_filter_order_and_limit_apply_in_that_order(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = selection(filter="subscriptions=2", sort="since", limit=1)
    assert names(chosen) == ["carl"]
    assert capsys.readouterr().err == ("note: 1 are shown, and there are 2: --limit 2 shows more\n")


def test_a_field_goes_by_the_header_of_its_column_too() -> None:
    assert names(selection(filter="client=a*")) == ["anna"]
    assert names(selection(sort="client:desc")) == ["carl", "bert", "anna"]


def test_a_moment_is_compared_as_an_age_or_as_a_time() -> None:
    assert names(selection(filter="since>10m")) == ["carl"]
    assert names(selection(filter="since>=-10s")) == ["bert"]


def test_what_is_there_too_much_is_said_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert names(selection(limit=3)) == ["anna", "bert", "carl"]
    assert capsys.readouterr().err == ""


def test_of_a_list_in_the_order_of_time_a_limit_keeps_the_end() -> None:
    assert names(selection(ListRules(newest_last=True), limit=2)) == ["bert", "carl"]
    assert names(selection(ListRules(newest_last=True), limit=1, sort="client")) == ["anna"]


def test_only_what_the_tool_does_not_choose_itself_is_bounded_in_the_daemon() -> None:
    assert selection(limit=5).wanted == Wanted(at_most=6)
    assert selection(ListRules(limit=7)).wanted == Wanted(at_most=8)
    assert selection(limit=5, filter="state=away").wanted == Wanted()
    in_daemon = selection(ListRules(in_daemon=True), filter="lag>1", sort="lag")
    assert in_daemon.wanted == Wanted("lag>1", "lag")
    assert names(in_daemon) == ["anna", "bert", "carl"]


def test_columns_replace_the_usual_ones_or_come_beside_them() -> None:
    def headers(columns: str) -> list[str]:
        return [column.header for column in selection(columns=columns).kind.columns]

    assert headers("subscriptions,client") == ["SUBSCRIPTIONS", "CLIENT"]
    assert headers("+expiry_s,+peer") == ["CLIENT", "STATE", "SINCE", "EXPIRY-S", "PEER"]


def test_documents_get_the_named_columns_alone() -> None:
    chosen = selection(output=Format.JSON, columns="client,peer")
    assert chosen.for_format(ITEMS[2]) == {"client_id": "carl", "peer": "uds"}
    more = selection(output=Format.JSON, columns="+peer")
    assert more.for_format(ITEMS[2]) == ITEMS[2]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"filter": "colour=red"}, FilterUnreadable),
        ({"sort": "colour"}, OrderUnreadable),
        ({"columns": "sbuscriptions"}, WrongUsage),
    ],
)
def test_a_mistake_is_told_before_anybody_is_asked(
    options: dict[str, str], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal, match=r"colour|Did you mean subscriptions"):
        selection(**options)  # type: ignore[arg-type] # of ListOptions
