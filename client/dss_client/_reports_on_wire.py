"""What a grant reports, as it goes over the wire.

Invariant: nothing of a report is left out, and one bad value does not hold back the rest. This
module knows neither calls nor sessions.
"""

import logging
from collections import deque

from dss_api.v1 import sessions_pb2 as wire
from dss_api.v1 import types_pb2
from dss_client._grant_report import GrantReport, Nak
from dss_client.limits import REFUSALS_A_REPORT
from dss_core.lane import MAIN
from dss_core.progress import Ranges

_LOG = logging.getLogger("dss_client")


def sent_together(reports: deque[GrantReport]) -> list[GrantReport]:
    """Take from the front the reports that go into one message."""
    taken: list[GrantReport] = []
    refusals = 0
    while reports and (refusals := refusals + len(reports[0].naks)) <= REFUSALS_A_REPORT:
        taken.append(reports.popleft())
    return taken


def settle_of(report: GrantReport) -> wire.Settle:
    """A report as an item of the call."""
    return wire.Settle(
        grant=report.grant,
        acked=_ranges(report.acked),
        naks=map(_nak, report.naks),
        # In a queue every hand-out is reported by offset.
        frontier=report.frontier if report.level == MAIN else 0,
        token=report.token,
        in_progress=_ranges(report.in_progress),
        handed_out=_ranges(report.handed_out),
        level=report.level,
    )


def _nak(nak: Nak) -> wire.Nak:
    try:
        return _whole_nak(nak)
    except (TypeError, ValueError):
        # All acks of the session go through here: one that cannot be encoded must not end them.
        _LOG.exception("the nak %s cannot be sent as it is: it goes without delay and error", nak)
        return wire.Nak(start=nak.start, end=nak.end, reject=bool(nak.failure.rejects))


def _whole_nak(nak: Nak) -> wire.Nak:
    text, kind, rejects = nak.failure
    return wire.Nak(
        start=nak.start,
        end=nak.end,
        delay_ms=nak.delay_ms,
        error=text,
        error_type=kind,
        reject=rejects,
    )


def _ranges(ranges: Ranges) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=start, end=end) for start, end in ranges]
