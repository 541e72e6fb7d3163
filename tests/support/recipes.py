"""Runs the recipes of `docs/client.md`, those with asyncio or those without, one by one.

Usage: python -m support.recipes async|sync, with DSSCTL_ENDPOINT set. Each recipe gets a topic of
its own in place of ``orders``, with `RECORDS` records. The function `handle`, which recipes call
for each record, ends those that would run for ever. Invariant: `given` has what a reader of the
page must provide, and nothing else.
"""

import asyncio
import os
import signal
import sqlite3
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas

import dss_client
import dss_client.sync
from dss_client.testing import MemoryDaemon
from support.page_blocks import blocks

RECORDS = 100


class Enough(BaseException):
    """The recipe has shown what it does; this stands in for Ctrl-C."""


def recipes(*, with_asyncio: bool) -> list[tuple[int, str]]:
    """The blocks of one sort, each with the line that it begins in."""
    found = [(each.line + 1, each.text) for each in blocks("docs/client.md", "python")]
    return [each for each in found if ("async " in each[1]) is with_asyncio]


def given(folder: Path, recipe: str) -> dict[str, Any]:
    """The names that a recipe takes for granted."""
    seen: set[tuple[str, int]] = set()

    def handle(record: dss_client.Record) -> None:
        seen.add((record.stream, record.offset))
        if len(seen) == RECORDS:
            if "SIGTERM" not in recipe:
                raise Enough
            os.kill(os.getpid(), signal.SIGTERM)

    return {
        "MemoryDaemon": MemoryDaemon,
        "ThreadPoolExecutor": ThreadPoolExecutor,
        "asyncio": asyncio,
        "dss_client": dss_client,
        "folder": folder,
        "handle": handle,
        "pandas": pandas,
        "signal": signal,
        "sqlite3": sqlite3,
    }


async def with_asyncio() -> None:
    """Run those with asyncio, all in one loop."""
    for line, recipe in recipes(with_asyncio=True):
        topic = f"orders{line}"
        async with dss_client.connect() as client:
            await client.topics.create(topic, partitions=2)
            async with client.producer(topic) as producer:
                await producer.send_columns([b"%d" % each for each in range(RECORDS)])
        source = f"async def recipe():\n{textwrap.indent(recipe.replace('orders', topic), '    ')}"
        with tempfile.TemporaryDirectory(prefix="dss") as folder:
            names = given(Path(folder), recipe)
            exec(compile(source, f"line {line}", "exec"), names)
            try:
                await names["recipe"]()
            except* Enough:
                pass


def without() -> None:
    """Run those without."""
    for line, recipe in recipes(with_asyncio=False):
        topic = f"orders{line}"
        with dss_client.sync.connect() as client:
            client.topics.create(topic, partitions=2)
            with client.producer(topic) as producer:
                producer.send_columns([b"%d" % each for each in range(RECORDS)])
        source = compile(recipe.replace("orders", topic), f"line {line}", "exec")
        try:
            exec(source, given(Path(), recipe))
        except* Enough:
            pass


if __name__ == "__main__":
    if sys.argv[1] == "async":
        asyncio.run(with_asyncio())
    else:
        without()
