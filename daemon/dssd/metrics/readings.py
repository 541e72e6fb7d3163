"""The values of one scrape, put under names of the table.

Invariant: a name that is not in the table, or with other labels, is a programmer's error. What was
never put is left out.
"""

from collections.abc import Iterable

from prometheus_client.core import HistogramMetricFamily

from dssd.measuring.latencies import Latencies
from dssd.metrics.table import BY_NAME, Family


class Readings:
    """Filled on the event loop, then written out by another thread; never both at a time."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def put(self, name: str, value: float, *labels: str) -> None:
        """One value, with its labels."""
        family = self._family(name, labels)
        assert not isinstance(family, HistogramMetricFamily), f"{name} has buckets"
        family.add_metric(labels, value)

    def put_latencies(self, name: str, latencies: Latencies) -> None:
        """One histogram."""
        family = self._family(name, ())
        assert isinstance(family, HistogramMetricFamily), f"{name} has no buckets"
        buckets = [
            ("+Inf" if bound is None else str(bound), float(count))
            for bound, count in latencies.up_to()
        ]
        family.add_metric((), buckets, latencies.sum_s)

    def families(self) -> Iterable[Family]:
        """All that was put."""
        return self._families.values()

    def _family(self, name: str, labels: tuple[str, ...]) -> Family:
        spec = BY_NAME[name]
        assert len(labels) == len(spec.labels), f"{name} has the labels {spec.labels}"
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = spec.family()
        return family
