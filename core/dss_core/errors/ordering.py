"""What would break the order of keys in a group that promises it (of DSS2xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class OrderNeedsOneTopic(DssError):
    """The filter of an ordered group does not lie within one topic.

    Fields: group, filter, why, command.
    """

    code = "DSS2150"
    sentence = "{group} cannot be ordered: an ordered group reads one topic, and {filter} {why}."
    hint = "{command}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class TopicDividesOrder(DssError):
    """A new topic would own a part of what an ordered group reads. Fields: topic, group, filter."""

    code = "DSS2153"
    sentence = (
        "The topic {topic} would own a part of {filter}, which {group} reads in order: that has to "
        "lie within one topic."
    )
    hint = (
        "Give the topic a pattern that holds all of {filter}, or none of it; or remove the group "
        "first: dssctl groups rm {group}"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class OrderComesWithQueues(DssError):
    """An edit of a group that keeps its queues. Fields: group, is_so, wanted, max_deliver."""

    code = "DSS2154"
    sentence = (
        "The group {group} is {is_so}, and the records in its queues were put there under that "
        "rule."
    )
    hint = (
        "Once its queues are empty, remove them, and add new ones: dssctl groups edit {group} "
        "--max-deliver 0; then dssctl groups edit {group} --max-deliver {max_deliver}{wanted}"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class PartOfKey(DssError):
    """A dead letter was to come back without the others of its key.

    Fields: group, stream, offset, key, count.
    """

    code = "DSS2155"
    sentence = (
        "The record at {offset} of {stream} is one of {count} dead letters with the key {key}, "
        "which come back together, in order."
    )
    hint = (
        "All of the key: dssctl dlq redrive {group} --key {key}. Only this one, which comes if "
        "nothing of its key stays dead before it: dssctl dlq redrive {group} {stream}@{offset} "
        "--unordered. To go on without it: dssctl dlq discard {group} {stream}@{offset}"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class KeysBeyondLook(DssError):
    """A plan reads a bounded number of dead letters. Fields: group, stream."""

    code = "DSS2156"
    sentence = (
        "{stream} has more dead letters than a plan reads, so it cannot tell which keys are "
        "complete."
    )
    hint = (
        "All of the stream comes back in order: dssctl dlq redrive {group} --origin {stream}; or "
        "as many as are found, without regard to the rest of their keys: add --unordered"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ShardsNeedOrder(DssError):
    """Shards are of ordered groups. Fields: group, new, shards."""

    code = "DSS2160"
    sentence = "{group} has no shards: only ordered groups have, and it is not ordered."
    hint = (
        "Nothing was changed. Its streams are shared out one by one, as many to each member. A "
        "group that is ordered: dssctl groups create {new} --ordered --max-deliver 5 --shards "
        "{shards}"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ShardCountUnfit(DssError):
    """No group of this topic can have so many shards. Fields: group, shards, topic, most, near."""

    code = "DSS2161"
    sentence = (
        "{group} cannot have {shards} shards: it has at least 1, and at most {most}, which is how "
        "many partitions {topic} has."
    )
    hint = (
        "Nothing was made or changed. The nearest count: {near}. For more the topic has to grow "
        "first: dssctl topics grow {topic} --partitions P"
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class DaemonKnowsNoMetadata(DssError):
    """An older daemon would forget what is kept with a group, and for how long. Fields: version."""

    code = "DSS2163"
    sentence = (
        "The daemon, of version {version}, keeps no metadata with groups and does not know which "
        "are unused; nothing was made or changed."
    )
    hint = (
        "Install the version of this client for the daemon, and start it again: what it holds "
        "stays."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class DaemonKnowsNoShards(DssError):
    """An older daemon would share the group out stream by stream. Fields: version."""

    code = "DSS2225"
    sentence = "The daemon, of version {version}, knows no shards; nothing was made or changed."
    hint = (
        "Install the version of this client for the daemon, and start it again: what it holds "
        "stays. Or leave out what is of shards."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class DaemonKnowsNoOrder(DssError):
    """An older daemon would take an ordered group for one without order. Fields: version."""

    code = "DSS2141"
    sentence = (
        "The daemon, of version {version}, knows no ordered groups; nothing was made or changed."
    )
    hint = (
        "Install the version of this client for the daemon, and start it again: what it holds "
        "stays. Or leave out what is of ordered groups."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT
