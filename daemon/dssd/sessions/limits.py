"""Bounds of what lies in the daemon for clients, with units last and reasons."""

DELIVERY_BYTES_MAX = 256 << 20
"""What was read for all sessions and not yet sent: the whole credit of thirty, a usual frame of two
thousand."""

DELIVERY_WRITE_COPIES = 3
"""How often the bytes of a message are there while it is written: in it, as what it becomes, and in
gRPC, until the client's flow control lets them go."""

DELIVERY_ROOM_S = 0.01
"""How soon those that wait for a part of it are asked, after another session gave back."""
