"""Every bound of metrics, with its unit last and its reason."""

GROUPS_LABELLED_MAX = 50
"""Groups with series of their own, those with the most lag; all others are summed in one. Each
series costs the watching side memory for as long as it keeps data."""

SCRAPE_S_MAX = 5.0
"""How long a scrape waits for the event loop: half of the time after which Prometheus gives up."""

REQUEST_S_MAX = 5.0
"""How long a request may take to arrive: one connection is served at a time."""

POLL_S = 0.2
"""How soon the server's thread notices that it is to end."""

SCRAPES_WAITING_MAX = 16
"""Connections that the kernel keeps until they are served; Prometheus has one."""
