"""Bulk jobs as items: what is printed of one, for people and programs. No wire, no daemon."""

from typing import TYPE_CHECKING

from dssctl.output import Instant, Item

if TYPE_CHECKING:
    from dss_client.job_values import Job


def job_item(job: "Job") -> Item:
    """A job as it stands."""
    said_at_ms, ended_at_ms = job.said_at_ms, job.ended_at_ms
    return {
        "name": job.name,
        "job_id": job.job_id,
        "kind": job.kind,
        "engine": job.engine,
        "state": job.state,
        "source": job.source or None,
        "target": job.target or None,
        "filter": job.filter or None,
        "published": job.published,
        "chunks": job.chunks,
        "records": job.records,
        "bytes": job.bytes,
        "rate_bytes_s": job.rate_bytes_s or None,
        "driver": job.driver or None,
        "driver_lives": job.driver_lives,
        "epoch": job.epoch,
        "said": job.said or None,
        "said_at": None if said_at_ms is None else Instant.of_ms(said_at_ms),
        "created_at": Instant.of_ms(job.created_at_ms),
        "ended_at": None if ended_at_ms is None else Instant.of_ms(ended_at_ms),
        "failure": job.failure or None,
        "revision": job.revision,
    }
