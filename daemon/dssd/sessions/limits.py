"""Bounds of what a session does by itself and of what lies in the daemon for clients, with units
last and reasons."""

READ_AT_ONCE_BYTES_MAX = 256 << 10
"""What the pump of a session reads from memory by itself before the rest is left to the readers,
which give way to each other: copying so much takes 0.1 ms."""

READ_AT_ONCE_COST_BYTES = 16 << 10
"""What such a read counts for beside its bytes, so that there are sixteen at most: each takes 0.1
to 0.2 ms with its steps of the delivery window, and a turn on the loop is 2 ms."""


DELIVERY_BYTES_MAX = 256 << 20
"""What was read for all sessions and not yet sent: the whole credit of thirty, a usual frame of two
thousand."""

DELIVERY_WRITE_COPIES = 3
"""How often the bytes of a message are there while it is written: in it, as what it becomes, and in
gRPC, until the client's flow control lets them go."""

DELIVERY_ROOM_S = 0.01
"""How soon those that wait for a part of it are asked, after another session gave back."""
