"""Changes whose wire message says the same as their value, field by field.

Invariant: as in `dssd.rpc.changes`, which has the table of all.
"""

from dss_api.v1 import groups_pb2, operations_pb2
from dss_core.errors import IllegalArgument
from dssd.leaders.declarations import PASS, STALL
from dssd.operations.changes import CloseSession, EditGroup, EditTopic, RemoveGroup, RemoveTopic

DAMAGE: dict[int, str | None] = {
    groups_pb2.ON_DAMAGE_UNSPECIFIED: None,
    groups_pb2.ON_DAMAGE_PASS: PASS,
    groups_pb2.ON_DAMAGE_STALL: STALL,
}
DAMAGE_NUMBERS = {PASS: groups_pb2.ON_DAMAGE_PASS, STALL: groups_pb2.ON_DAMAGE_STALL}


def on_damage(number: int) -> str | None:
    """What becomes of damaged records, by its number on the wire.

    Raises:
        IllegalArgument: there is no such choice.
    """
    if number not in DAMAGE:
        raise IllegalArgument(argument="on_damage", rule="it is pass or stall")
    return DAMAGE[number]


def edit_group(message: operations_pb2.EditGroup) -> EditGroup:
    """From the wire."""
    ack_wait_ms = message.ack_wait_ms if message.HasField("ack_wait_ms") else None
    return EditGroup(message.group, ack_wait_ms, on_damage(message.on_damage))


def edit_group_message(change: EditGroup) -> tuple[str, operations_pb2.EditGroup]:
    """To the wire."""
    return "edit_group", operations_pb2.EditGroup(
        group=change.group,
        ack_wait_ms=change.ack_wait_ms,
        on_damage=DAMAGE_NUMBERS.get(change.on_damage or "", groups_pb2.ON_DAMAGE_UNSPECIFIED),
    )


def edit_topic(message: operations_pb2.EditTopic) -> EditTopic:
    """From the wire."""
    return EditTopic(
        message.topic,
        retention_ms=message.retention_ms if message.HasField("retention_ms") else None,
        retention_bytes=message.retention_bytes if message.HasField("retention_bytes") else None,
        no_retention_ms=message.no_retention_ms,
        no_retention_bytes=message.no_retention_bytes,
        durability=message.durability or None,
    )


def edit_topic_message(change: EditTopic) -> tuple[str, operations_pb2.EditTopic]:
    """To the wire."""
    return "edit_topic", operations_pb2.EditTopic(
        topic=change.topic,
        retention_ms=change.retention_ms,
        retention_bytes=change.retention_bytes,
        no_retention_ms=change.no_retention_ms,
        no_retention_bytes=change.no_retention_bytes,
        durability=change.durability or "",
    )


def remove_group(message: operations_pb2.RemoveGroup) -> RemoveGroup:
    """From the wire."""
    return RemoveGroup(message.group)


def remove_group_message(change: RemoveGroup) -> tuple[str, operations_pb2.RemoveGroup]:
    """To the wire."""
    return "remove_group", operations_pb2.RemoveGroup(group=change.group)


def remove_topic(message: operations_pb2.RemoveTopic) -> RemoveTopic:
    """From the wire."""
    return RemoveTopic(message.topic, message.force)


def remove_topic_message(change: RemoveTopic) -> tuple[str, operations_pb2.RemoveTopic]:
    """To the wire."""
    return "remove_topic", operations_pb2.RemoveTopic(topic=change.topic, force=change.force)


def close_session(message: operations_pb2.CloseSession) -> CloseSession:
    """From the wire."""
    return CloseSession(message.client_id, message.session_id)


def close_session_message(change: CloseSession) -> tuple[str, operations_pb2.CloseSession]:
    """To the wire."""
    message = operations_pb2.CloseSession(client_id=change.client_id, session_id=change.session_id)
    return "close_session", message
