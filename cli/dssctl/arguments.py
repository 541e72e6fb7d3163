"""Arguments that several commands take, written once."""

from typing import Annotated

import typer

from dssctl.limits import OPERATION_NUMBER_MAX

GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", help="NAME where only one has it, else NAME@FILTER.")
]
OfGroup = Annotated[
    str | None,
    typer.Option("-g", "--group", help="Only this group: NAME or NAME@FILTER."),
]
GroupToo = Annotated[str | None, typer.Argument(metavar="[GROUP]", help="The same as --group.")]
StreamName = Annotated[str, typer.Argument(metavar="STREAM", help="Such as orders/0/3.")]
IfExists = Annotated[
    bool, typer.Option("--if-exists", "--ignore-not-found", help="Accept that it is gone.")
]
AckWait = Annotated[
    str | None,
    typer.Option(metavar="SPAN", help="Send a record again that is unacknowledged this long."),
]
MaxDeliver = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="Failures that make a record a dead letter; 0: no limit.",
    ),
]
MaxDeliverOfNew = Annotated[
    int | None,
    typer.Option(
        "--max-deliver",
        metavar="N",
        min=1,
        help="Failures that make a record a dead letter; without it there is no limit, "
        "and no queues.",
    ),
]
Backoff = Annotated[
    str | None,
    typer.Option(
        metavar="SPANS",
        help="How long a record waits after each failure; the last repeats. Default for a new "
        "group with --max-deliver: 1s,5s,30s,5m.",
    ),
]
QueueRecords = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Limit of records in the queues of one stream."),
]
QueueBytes = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Limit of bytes in its queues, such as 4G.")
]
Ordered = Annotated[
    bool,
    typer.Option(
        "--ordered", help="Keep the order of keys through retries: together with --max-deliver."
    ),
]
OnDeadLetter = Annotated[
    str | None,
    typer.Option(
        metavar="CHOICE",
        help="Of an ordered group: block later records of its key, or skip the dead one.",
    ),
]
Keyless = Annotated[
    str | None,
    typer.Option(
        metavar="CHOICE",
        help="Of an ordered group: deliver records without a key, or have them dead.",
    ),
]
GroupStart = Annotated[
    str | None,
    typer.Option(
        "--start", metavar="TIME", help="now, earliest, -15m, a date, RFC 3339, @unix, =OFFSET."
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(metavar="PROTOCOL", help="borrow (default) or lease."),
]
Allocation = Annotated[
    str | None,
    typer.Option(
        metavar="CHOICE",
        help="Of an ordered group: shard, as where none is given, or sticky, one by one.",
    ),
]
Shards = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Of an ordered group: the number of shards; default: the topic's base.",
    ),
]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.")]
OperationNumber = Annotated[
    int,
    typer.Argument(
        metavar="NUMBER",
        min=1,
        max=OPERATION_NUMBER_MAX,
        help="The operation's number; see dssctl ops ls.",
    ),
]


def of_one_group(context: typer.Context, named: str | None, option: str | None) -> str | None:
    """The group of a list, named by an argument, as for every other command, or by an option.

    Raises:
        typer.BadParameter: it is named twice.
    """
    if named is not None and option is not None:
        raise typer.BadParameter("the group is named twice.", ctx=context)
    return option if named is None else named
