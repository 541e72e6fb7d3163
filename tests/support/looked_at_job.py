"""A bulk job as a client is told of it, for tests that change what they are about."""

from dss_client.job_values import Job

JOB = Job(
    job_id=6,
    name="again",
    kind="replay",
    engine="local",
    state="active",
    source="orders",
    target="copies",
    filter="",
    hops_max=4,
    params="",
    rate_bytes_s=0,
    chunks=8,
    published=3,
    records=300,
    bytes=4_000,
    epoch=2,
    driver="engine, pid 7",
    driver_lives=True,
    said="",
    said_at_ms=None,
    created_at_ms=1_000,
    ended_at_ms=None,
    failure="",
    revision=1,
)
