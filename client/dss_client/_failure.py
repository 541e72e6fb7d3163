"""The error of a failed record, as the daemon is told it.

Invariant: both texts are short and can be encoded, whatever they were made from, so a failure is
always reported.
"""

from typing import NamedTuple

from dss_core.lane import cut_text

Error = str | BaseException | None
"""Why a record is refused: a text, or the exception that was raised."""


class Reject(Exception):
    """Raised by a handler of `Subscription.run`: the record is to go to the dead letters at once.

    Its text says why, and what it was raised ``from`` says what kind of error that is. In a group
    without dead letters the record comes again, as after any other exception.
    """


class Failure(NamedTuple):
    """Why a record is refused."""

    text: str = ""
    kind: str = ""
    """The type of the error, such as the name of an exception."""
    rejects: bool = False
    """The record shall not be sent again."""


NOTHING_SAID = Failure()


def failure_of(error: Error, *, rejects: bool = False) -> Failure:
    """The type and the text to report of an error."""
    if error is None:
        return Failure(rejects=rejects)
    if isinstance(error, str):
        return Failure(cut_text(error), rejects=rejects)
    named = (error.__cause__ or error) if isinstance(error, Reject) else error
    return Failure(cut_text(_text_of(error)), cut_text(type(named).__name__), rejects)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - of the user's class, and it failed anyhow
        return "its text cannot be made"
