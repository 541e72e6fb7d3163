"""Bounds of metrics that several modules take, with units last and reasons."""

GROUPS_LABELLED_MAX = 50
"""Groups with series of their own, those with the most lag; all others are summed in one. Each
series costs the watching side memory for as long as it keeps data."""

POLL_S = 0.2
"""How soon the server's thread notices that it is to end."""
