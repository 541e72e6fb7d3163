"""What is said of a record that failed, as the daemon is told it.

Invariant: both texts are short and can be encoded, whatever they were made of; so a failure is
always told.
"""

from typing import NamedTuple

from dss_core.lane import cut_text

Error = str | BaseException | None
"""Why a record is refused: a text, or what was raised."""


class Reject(Exception):
    """Raised by a handler of `Subscription.run`: the record is to go to the dead letters at once.

    Its text says why, and what it was raised ``from`` says what kind of error that is. In a group
    without dead letters the record comes again, as after any other exception.
    """


class Failure(NamedTuple):
    """Why a record is refused."""

    text: str = ""
    kind: str = ""
    """Such as the name of an exception."""
    rejects: bool = False
    """It shall not come again."""


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
