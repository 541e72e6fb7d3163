"""`dss_client.sync` at what other programs do with asyncio: consuming, producing one by one."""

import json
import sys
import time

from workload import KEYS, PAYLOAD, TOPIC

import dss_client.sync


def by_batch(subscription: dss_client.sync.Subscription, records: int) -> None:
    seen = 0
    for batch in subscription.batches():
        seen += len(batch)
        batch.ack()
        if seen >= records:
            return


def by_record(subscription: dss_client.sync.Subscription, records: int) -> None:
    for seen, record in enumerate(subscription, 1):
        record.ack()
        if seen >= records:
            return


def consume(client: dss_client.sync.Client, mode: str, group: str, records: int) -> float:
    with client.subscribe(f"$share/{group}/{TOPIC}/#", start="earliest") as subscription:
        first = subscription.fetch(1, timeout=20)
        first[0].ack()
        began = time.perf_counter()
        (by_batch if mode == "batch" else by_record)(subscription, records - 1)
        return time.perf_counter() - began


def produce(client: dss_client.sync.Client, records: int) -> float:
    with client.producer(TOPIC) as producer:
        producer.send(PAYLOAD, key=KEYS[0])
        keys = (KEYS * (records // len(KEYS) + 1))[:records]
        began = time.perf_counter()
        for key in keys:
            producer.enqueue(PAYLOAD, key=key)
        producer.flush()
        return time.perf_counter() - began


def main(endpoint: str, mode: str, records: int) -> None:
    with dss_client.sync.connect(endpoint=endpoint) as client:
        if mode == "produce":
            seconds = produce(client, records)
        else:
            seconds = consume(client, mode, f"sync-{mode}", records)
    print(json.dumps({"records": records, "seconds": seconds}))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
