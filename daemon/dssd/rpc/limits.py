"""Bounds of answers, of peers and of what is kept of calls, with units last and reasons."""

from dssd.limits import APPEND_BYTES_IN_FLIGHT_MAX, TAIL_CACHE_BYTES_MAX, WRITER_QUEUE_BYTES_MAX

SESSIONS_LISTED_MAX = 2_000
"""In one answer: some 600 KiB of the longest names; a caller asks on behind it."""

RUNS_TOLD_MAX = 2_048
"""In one answer, some 80 KiB that cost the loop two milliseconds; a caller asks on behind them."""

REFUSALS_KEPT_AT_ONCE = 20
"""Refused calls of one principal that are kept one by one, when it was quiet before."""

REFUSAL_KEPT_EVERY_MS = 360_000
"""After those: one event in so long, which counts the others. 240 a day, so that a caller that is
refused without end needs six weeks to fill what is kept, and old events go after a month."""

REFUSED_PRINCIPALS_MAX = 256
"""Principals whose refusals are counted, the latest: each some hundred bytes."""

PEER_CONNECTIONS_MIN = 8
"""Connections that no peer loses, however few are left: a client has one, a program a few."""

CONNECTIONS_LOOK_S = 0.5
CONNECTIONS_LOOK_AGAIN_S = 0.25
"""How often it is looked who is connected, and how soon again where a peer lost connections: it
fills what became free in about half a second. A look at 4,096 costs 20 ms in steps."""

CONNECTIONS_LOOK_SHARE = 0.1
"""Of the loop's time. To look at 4,096 new connections takes some 100 ms, and who is cut may come
back with as many each time."""

CONNECTION_IDLE_MS = 60_000
"""A connection without a call is ended after so long; gRPC's clients connect again by
themselves."""

OPERATOR_CONNECTIONS_MAX = 64
OPERATOR_CALLS_MAX = 256
"""What is kept for operators, at a socket of their own: a few people and what watches for them."""

PEERS_SHOWN_MAX = 5
"""Peers in the daemon's status, those that hold most."""

PEER_CALLS_MIN = 8
"""Calls that every peer may have open, however few are left."""

FIRST_MESSAGE_S = 10.0
"""From the beginning of a call until its first message has come: seconds on a bad network."""

ARRIVAL_LOOK_S = 1.0
"""How often it is looked at the heap: in a second one peer can bring a gigabyte at most."""

ARRIVAL_REST_S = 3.0
"""And how long after calls were ended: until then a busy daemon has not seen the last of them."""

ARRIVAL_COLLECT_SHARE = 0.02
"""Of the loop's time, for looking for dead cycles while the heap is over its bound: to look once
took 0.3 s with a gigabyte in it."""

ARRIVAL_BYTES_MAX = 256 << 20
"""Messages on their way to the daemon, of all calls together: 64 of the largest size, a thousand
usual ones."""

ARRIVAL_QUIET_S = 3.0
"""A wait for a message is ended only after so long: a client of ours says something twice as often
on a session that nothing comes over."""

CONNECTION_HEAP_BYTES = 64 << 10
"""What a connection may have in the heap (measured: 20 KiB for an idle one)."""

CALL_HEAP_BYTES = 128 << 10
"""What a call and its session may have in the heap beside messages."""

HEAP_BOUNDED_BYTES = (
    TAIL_CACHE_BYTES_MAX + WRITER_QUEUE_BYTES_MAX + APPEND_BYTES_IN_FLIGHT_MAX + (64 << 20)
)
"""What other bounds let the heap hold, caches and queues of log and store."""

CONCURRENT_STREAMS_MAX = 128
"""Calls per connection. A client needs a handful, and one for each topic that it produces to; more
wait in the client. Each may bring half a message of the largest size, 4 MiB."""

PEER_PING_INTERVAL_MIN_MS = 1_000
"""Clients ping every 2 s; a peer that pings faster than this is told to go away."""

HANDSHAKE_TIMEOUT_MS = 5_000
"""A connection that says nothing must not hold a descriptor for long."""

GROUPS_LISTED_MAX = 5_000
"""In one answer: some two megabytes; a caller asks on behind it."""

CHUNKS_REPLY_BYTES = 1 << 20
"""What the chunks of a job in one answer take, roughly: a quarter of a message."""

ITEM_JOINED_BYTES_MIN = 96 << 10
"""From here on an item of records is put together of its bytes, past protobuf, which copies them
three times; for fewer that takes less time than the steps here (measured)."""
