"""``dssctl doctor``: what is wrong, from the client to the groups, and what helps."""

import asyncio

import typer

from dssctl.doctor.facts import gathered
from dssctl.doctor.local_findings import findings_of
from dssctl.doctor.telling import FINDING_KIND, OnlyTrouble, Strict, tell
from dssctl.tree import settings_of, showing, verb_alone

app = verb_alone("doctor")


@app.command(cls=showing(FINDING_KIND))
def doctor(
    context: typer.Context, only_trouble: OnlyTrouble = False, strict: Strict = False
) -> None:
    """Look at client, daemon, disk, log and groups; exit code 1 where there are problems."""
    settings = settings_of(context)
    findings = findings_of(asyncio.run(gathered(settings)))
    tell(settings, findings, only_trouble=only_trouble, strict=strict)
