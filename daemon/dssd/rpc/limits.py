"""Bounds of answers and of what is kept of calls, with units last and reasons."""

SESSIONS_LISTED_MAX = 2_000
"""In one answer: some 600 KiB of the longest names; a caller asks on behind it."""

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
CONNECTIONS_LOOK_AGAIN_S = 0.1
"""How often it is looked who is connected, and how soon again where a peer lost connections: it
may fill what became free in less than half a second. A look at 4,096 costs 20 ms in steps."""

CONNECTION_IDLE_MS = 60_000
"""A connection without a call is ended after so long; gRPC's clients connect again by
themselves."""

OPERATOR_CONNECTIONS_MAX = 64
OPERATOR_CALLS_MAX = 256
"""What is kept for operators, at a socket of their own: a few people and what watches for them."""
