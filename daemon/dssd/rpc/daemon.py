"""The servicer of `Daemon`: identity, status and findings of this process."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio

from dss_api.v1 import daemon_pb2, daemon_pb2_grpc, groups_pb2
from dss_api.values import encoded
from dss_core.answers import DaemonStatus
from dssd.questions.findings import FindingQuestions

Context = grpc.aio.ServicerContext[Any, Any]


class DaemonServicer(daemon_pb2_grpc.DaemonServicer):
    """Tells the facts, and what they mean."""

    def __init__(
        self, facts: Callable[[], Awaitable[DaemonStatus]], findings: FindingQuestions
    ) -> None:
        self._facts = facts
        self._findings = findings

    async def Status(
        self, request: daemon_pb2.DaemonStatusRequest, context: Context
    ) -> daemon_pb2.DaemonStatus:
        """How the daemon stands now."""
        return encoded(await self._facts(), daemon_pb2.DaemonStatus)

    async def Findings(
        self, request: daemon_pb2.FindingsRequest, context: Context
    ) -> daemon_pb2.FindingsReply:
        """The findings; only those of a topic or a session if the request names one."""
        found = await self._findings.ask(request.topic, request.client_id)
        findings = [encoded(each, groups_pb2.Verdict) for each in found]
        return daemon_pb2.FindingsReply(findings=findings)
