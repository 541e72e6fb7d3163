"""Baseline: makes the same record objects from the same frames, in process, without a daemon."""

import json
import sys
import time

from workload import frames_by_partition, stored

from dss_client.record import DeliveredRecord, rows_of
from dss_core.decode import decode


class _Source:
    stream = "bench/0/0"


def main(records: int, records_per_frame: int) -> None:
    frames = []
    for own in frames_by_partition(records_per_frame, 4).values():
        for number, frame in enumerate(own):
            frames.append(stored(frame, number * records_per_frame))
    rounds = records // (len(frames) * records_per_frame) or 1
    source = _Source()
    made = 0
    began = time.perf_counter()
    for _ in range(rounds):
        for frame in frames:
            for _record in rows_of(DeliveredRecord, source, decode(frame)):
                made += 1
    seconds = time.perf_counter() - began
    print(json.dumps({"records": made, "seconds": seconds}))


main(int(sys.argv[1]), int(sys.argv[2]))
