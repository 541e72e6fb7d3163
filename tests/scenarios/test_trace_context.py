"""OpenTelemetry's context travels on records as headers, and comes out as it went in."""

import dss_client
from support.daemon_process import running

CONTEXT = {
    "traceparent": b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": b"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
}


async def test_the_context_of_a_trace_reaches_every_consumer_and_comes_again() -> None:
    async with running("--dev") as daemon, dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create("orders", partitions=1)
        async with client.producer("orders") as producer:
            await producer.send(b"one", headers=CONTEXT)
            await producer.send_columns(payloads=[b"two"] * 100, headers=[CONTEXT] * 100)
        async with client.subscribe("$share/g/orders/#", start="earliest") as subscription:
            refused = False
            seen = 0
            async for record in subscription:
                assert dict(record.headers) == CONTEXT
                if not refused:
                    refused = True
                    await record.nak(delay=0)
                    continue
                await record.ack()
                seen += 1
                if seen == 101:
                    break
