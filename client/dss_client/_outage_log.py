"""Telling the operator of a lost connection: one warning at its start, one at its end.

Invariant: however many attempts an outage takes, it is two lines in the log of ``dss_client``.
"""

import logging

from dss_core.errors import DssError

_LOG = logging.getLogger("dss_client")


class Outage:
    """Whether one call that is kept open is away."""

    __slots__ = ("_away", "_endpoint", "_what")

    def __init__(self, what: str, endpoint: str) -> None:
        self._what = what
        self._endpoint = endpoint
        self._away = False

    def began(self, reason: DssError) -> None:
        """The connection is lost, and tried for again."""
        if not self._away:
            self._away = True
            said = "%s lost its connection to %s and goes on trying: %s"
            _LOG.warning(said, self._what, self._endpoint, reason.message)

    def ended(self) -> None:
        """The daemon has answered."""
        if self._away:
            self._away = False
            _LOG.warning("%s is connected to %s again", self._what, self._endpoint)
