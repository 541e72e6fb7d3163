"""The checks of a client's opening, before anything is done for it.

Invariant: the checks change no state. An opening that passed is within its bounds, its principal
owns the session, and the session that it names exists.
"""

from dss_core.errors import (
    IllegalArgument,
    SessionNotFound,
    SessionOfAnother,
    SessionTakenOver,
)
from dss_core.limits import SESSION_EXPIRY_S_MAX
from dssd.sessions.client_items import Opening
from dssd.store.rows import SessionRow

SESSION_ID_BYTES = 16


def check_owner(row: SessionRow, opening: Opening) -> None:
    """Check that the principal who opens a session owns it.

    A client id is no secret: without this check, anyone who knows it could take the session over.

    Raises:
        SessionOfAnother: it belongs to another principal.
    """
    if row.principal != opening.principal:
        raise SessionOfAnother(
            principal=opening.principal or "somebody unknown", client_id=row.client_id
        )


def check_stored(client_id: str, row: SessionRow | None, opening: Opening) -> None:
    """Check that the client may open what is stored under its client id, if anything is.

    A client that names a session comes back to it. If the session expired, the client may begin
    anew. If another client uses the client id since, the other client is newer, and stays.

    Raises:
        SessionOfAnother: the session belongs to another principal.
        SessionNotFound: the session that it names is over, and no other has come since.
        SessionTakenOver: another client discarded it.
    """
    if row is not None:
        check_owner(row, opening)
    if not opening.session_id:
        return
    if row is None:
        raise SessionNotFound(client_id=client_id)
    if row.session_id != opening.session_id:
        raise SessionTakenOver(client_id=client_id)


def check_opening(opening: Opening) -> None:
    """Check the bounds of what a client asks for.

    Raises:
        IllegalArgument: a value is out of its bounds.
    """
    if not 0 <= opening.expiry_s <= SESSION_EXPIRY_S_MAX:
        raise IllegalArgument(argument="session_expiry_s", rule=f"0 to {SESSION_EXPIRY_S_MAX}")
    if opening.session_id and len(opening.session_id) != SESSION_ID_BYTES:
        raise IllegalArgument(argument="session_id", rule=f"{SESSION_ID_BYTES} bytes")
    for name, credit in (
        ("credit_records", opening.credit_records),
        ("credit_bytes", opening.credit_bytes),
    ):
        if credit is not None and credit < 1:
            raise IllegalArgument(argument=name, rule="at least 1")
