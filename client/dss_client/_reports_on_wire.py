"""What a grant reports, as it goes over the wire.

Invariant: nothing of a report is left out. Knows neither calls nor sessions.
"""

from dss_api.v1 import sessions_pb2 as wire
from dss_api.v1 import types_pb2
from dss_client._grant import GrantReport
from dss_core.progress import Ranges


def settle_of(report: GrantReport) -> wire.Settle:
    """A report as an item of the call."""
    return wire.Settle(
        grant=report.grant,
        acked=_ranges(report.acked),
        naks=[
            wire.Nak(start=start, end=end, delay_ms=delay_ms)
            for start, end, delay_ms in report.naks
        ],
        frontier=report.frontier,
        token=report.token,
        in_progress=_ranges(report.in_progress),
        handed_out=_ranges(report.handed_out),
    )


def _ranges(ranges: Ranges) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=start, end=end) for start, end in ranges]
