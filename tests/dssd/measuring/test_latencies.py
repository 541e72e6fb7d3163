from dssd.measuring.latencies import Latencies


def test_a_time_counts_in_its_bucket_and_in_all_above() -> None:
    latencies = Latencies((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 20.0):
        latencies.note(seconds)
    assert list(latencies.up_to()) == [(0.1, 2), (1.0, 3), (None, 4)]
    assert latencies.sum_s == 20.65
