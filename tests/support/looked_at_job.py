"""A bulk job as a client receives it, for tests that change single fields."""

from dss_api.v1 import jobs_pb2
from dss_client.job_values import Job
from support.blank_values import blank

JOB = blank(
    Job,
    jobs_pb2.Job,
    job_id=6,
    name="again",
    kind="replay",
    engine="local",
    state="active",
    source="orders",
    target="copies",
    hops_max=4,
    chunks=8,
    published=3,
    records=300,
    bytes=4_000,
    epoch=2,
    driver="engine, pid 7",
    driver_lives=True,
    created_at_ms=1_000,
    revision=1,
)
