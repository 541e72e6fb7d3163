"""A program with a token that publishes below `orders/eu` and consumes as `billing`.

It tells what it did, and what it was denied, as one line of JSON. Its files are named by the
environment, as they are for `dssctl`.
"""

import json
import sys

import dss_client
from dss_core.errors import DssError

RECORDS = 20


async def main(endpoint: str) -> None:
    """Publish, consume what was published, and try what is not allowed."""
    told: dict[str, object] = {}
    async with dss_client.connect("worker", endpoint=endpoint, patient=False) as client:
        async with client.producer("orders") as producer:
            for number in range(RECORDS):
                await producer.send(b"%d" % number, subject="orders/eu/1", key=b"k")
            told["outside"] = await denial(producer.send(b"x", subject="orders/us/1"))
        taken: list[int] = []
        group = "$share/billing/orders/eu/#"
        async with client.subscribe(group, start="earliest") as records:
            async for record in records:
                taken.append(int(record.payload))
                await record.ack(sync=True)
                if len(taken) == RECORDS:
                    break
        told["taken"] = taken
        told["removing"] = await denial(client.topics.remove("orders"))
        told["topics"] = [each.topic.name for each in await client.topics.list()]
    sys.stdout.write(json.dumps(told) + "\n")


async def denial(asked: object) -> str:
    """The code and the hint of what is not allowed."""
    try:
        await asked  # type: ignore[misc] # whatever is asked
    except DssError as error:
        return f"{error.code} {error.hint_text}"
    return "allowed"


dss_client.run(main(sys.argv[1]))
