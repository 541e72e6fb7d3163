"""Arguments that several commands take, written once."""

from typing import Annotated

import typer

GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", help="NAME where only one has it, else NAME@FILTER.")
]
StreamName = Annotated[str, typer.Argument(metavar="STREAM", help="orders/0/3 for one.")]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="Its name.")]
OperationNumber = Annotated[
    int, typer.Argument(metavar="NUMBER", min=1, help="Of the operation; see dssctl ops ls.")
]
