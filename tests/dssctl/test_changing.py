"""What a command that changes something does where the daemon is lost in between."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import pytest

from dss_api.v1 import operations_pb2
from support.dssctl_call import call_dssctl

GRACE_S = 10.0
CHANGE = operations_pb2.Change(resume_group=operations_pb2.ResumeGroup(group="g"))


class Lost:
    """Plans, and loses the connection whenever a change is applied."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.takes: operations_pb2.Operation | None = None
        """What it answers before it goes; None: it goes before it answers."""
        self.go: Callable[[], None] = lambda: None

    def plan(
        self, request: operations_pb2.PlanRequest, _context: grpc.ServicerContext
    ) -> operations_pb2.OperationPlan:
        """The method of the wire."""
        assert request.change == CHANGE
        summary = "end the pause of g@t/#"
        return operations_pb2.OperationPlan(
            change=CHANGE, kind="groups.resume", subject="g@t/#", revision=3, summary=summary
        )

    def apply(
        self, request: operations_pb2.ApplyRequest, context: grpc.ServicerContext
    ) -> operations_pb2.Operation:
        """The method of the wire."""
        assert (request.change, request.if_revision) == (CHANGE, 3)
        self.ids.append(request.operation_id)
        if self.takes is None:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        context.add_callback(self.go)
        return self.takes


def _stop(stopper: ThreadPoolExecutor, server: grpc.Server) -> None:
    # Without grace the connection may be closed before the answer was sent.
    stopper.submit(server.stop, GRACE_S)


@pytest.fixture
def lost() -> Iterator[tuple[Lost, str]]:
    """A daemon that is lost while it applies."""
    daemon = Lost()
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Plan": grpc.unary_unary_rpc_method_handler(
            daemon.plan,
            operations_pb2.PlanRequest.FromString,
            operations_pb2.OperationPlan.SerializeToString,
        ),
        "Apply": grpc.unary_unary_rpc_method_handler(
            daemon.apply,
            operations_pb2.ApplyRequest.FromString,
            operations_pb2.Operation.SerializeToString,
        ),
    }
    server = grpc.server(ThreadPoolExecutor(1))
    name = "dss_api.v1.Operations"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, methods),))
    with TemporaryDirectory(prefix="dss") as folder:
        endpoint = f"unix:{Path(folder) / 's'}"
        server.add_insecure_port(endpoint)
        server.start()
        # gRPC runs the callback under a lock that a stop takes.
        with ThreadPoolExecutor(1) as stopper:
            daemon.go = partial(_stop, stopper, server)
            yield daemon, endpoint
        server.stop(grace=None).wait()


def test_a_change_whose_outcome_is_unknown_names_the_id_that_makes_it_once(
    lost: tuple[Lost, str],
) -> None:
    daemon, endpoint = lost
    done = call_dssctl("--endpoint", endpoint, "groups", "resume", "g", "-y")
    assert (done.returncode, done.stdout) == (4, b"")
    first, second = daemon.ids
    assert first == second, "the client asked twice, for one change"
    said = done.stderr.decode()
    assert "error DSS5003" in said
    assert f"the same command with --op-id {first} applies it once at most" in said
    assert "look: dssctl ops ls --group 'g@t/#'" in said


def test_a_change_that_was_taken_before_the_daemon_went_is_named(lost: tuple[Lost, str]) -> None:
    daemon, endpoint = lost
    daemon.takes = operations_pb2.Operation(number=57, state="running", kind="groups.resume")
    done = call_dssctl("--endpoint", endpoint, "groups", "resume", "g", "-y")
    assert (done.returncode, done.stdout) == (3, b"")
    said = done.stderr.decode()
    assert "operation 57: it was taken, and what is left of it is done once a daemon runs" in said
    assert "look: dssctl ops show 57" in said
    assert "error DSS5001" in said


def test_nothing_is_applied_that_nobody_agreed_to(lost: tuple[Lost, str]) -> None:
    daemon, endpoint = lost
    done = call_dssctl("--endpoint", endpoint, "groups", "resume", "g")
    assert done.returncode == 2
    assert b"dssctl groups resume needs to be confirmed" in done.stderr
    assert call_dssctl("--endpoint", endpoint, "groups", "resume", "g", "--dry-run").returncode == 0
    assert daemon.ids == []
