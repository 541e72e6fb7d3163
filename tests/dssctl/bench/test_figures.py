"""Figures of a bench."""

from dssctl.bench.figures import Part


def test_rates_and_percentiles_come_from_what_was_measured() -> None:
    latencies = tuple(number / 1_000 for number in range(100, 0, -1))
    item = Part("ack", 200, 0.5, 4_000, latencies).item
    assert (item["records_per_s"], item["bytes_per_s"]) == (400, 8_000)
    assert (item["p50_ms"], item["p99_ms"], item["max_ms"]) == (51.0, 100.0, 100.0)


def test_without_latencies_there_are_no_percentiles() -> None:
    item = Part("deliver", 0, 0.0, 0).item
    assert (item["records_per_s"], item["p50_ms"], item["max_ms"]) == (0, None, None)
