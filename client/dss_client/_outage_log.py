"""Logs a lost connection: one warning when it is lost, one when it is back.

Invariant: an outage is two lines in the log of ``dss_client``, however many attempts it takes.
"""

import logging

from dss_core.errors import DssError

_LOG = logging.getLogger("dss_client")


class Outage:
    """The outages of one long-lived call."""

    __slots__ = ("_away", "_endpoint", "_what")

    def __init__(self, what: str, endpoint: str) -> None:
        self._what = what
        self._endpoint = endpoint
        self._away = False

    def began(self, reason: DssError) -> None:
        """The connection is lost, and is being made again."""
        if not self._away:
            self._away = True
            said = "%s lost its connection to %s and keeps trying: %s"
            _LOG.warning(said, self._what, self._endpoint, reason.message)

    def ended(self) -> None:
        """The daemon has answered."""
        if self._away:
            self._away = False
            _LOG.warning("%s is connected to %s again", self._what, self._endpoint)
