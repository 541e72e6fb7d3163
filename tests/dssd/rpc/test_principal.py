import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from dss_api.v1 import (
    access_pb2,
    backups_pb2,
    daemon_pb2,
    events_pb2,
    groups_pb2,
    jobs_pb2,
    log_pb2,
    operations_pb2,
    queues_pb2,
    schedules_pb2,
    sessions_pb2,
    topics_pb2,
    watch_pb2,
)
from dss_core.errors import PermissionDenied
from dssd.access.permissions import Principal, Role
from dssd.rpc.principal import METHOD_ROLES, principal_of, require
from dssd.rpc.server import SERVICES

FILES = (
    access_pb2,
    backups_pb2,
    daemon_pb2,
    events_pb2,
    groups_pb2,
    jobs_pb2,
    log_pb2,
    operations_pb2,
    queues_pb2,
    schedules_pb2,
    sessions_pb2,
    topics_pb2,
    watch_pb2,
    health_pb2,
    reflection_pb2,
)


def services() -> list[ServiceDescriptor]:
    return [service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()]


def test_every_served_method_and_no_other_has_a_role() -> None:
    methods = {
        f"/{service.full_name}/{method.name}"
        for service in services()
        for method in service.methods
    }
    assert methods == set(METHOD_ROLES)


def test_every_service_of_ours_has_its_health_told() -> None:
    names = {service.full_name for service in services()}
    assert {name for name in names if not name.startswith("grpc.")} == set(SERVICES)


def test_a_method_without_a_role_is_denied_to_everybody() -> None:
    everything = Principal("root", frozenset(Role))
    with pytest.raises(PermissionDenied):
        require(everything, "/dss_api.v1.Topics/Explode")


def test_a_role_that_the_caller_lacks_is_denied() -> None:
    reader = Principal("reader", frozenset({Role.READ}))
    require(reader, "/dss_api.v1.Topics/List")
    with pytest.raises(PermissionDenied) as denied:
        require(reader, "/dss_api.v1.Topics/Remove")
    assert denied.value.fields["role"] == "operate"
    assert denied.value.grpc_status == grpc.StatusCode.PERMISSION_DENIED.name


class Peer:
    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        return self._peer


@pytest.mark.parametrize(
    ("peer", "name"),
    [("unix:", "local:"), ("ipv4:127.0.0.1:40", "loopback"), ("ipv6:%5B::1%5D:40", "loopback")],
)
def test_the_transport_says_who_calls(peer: str, name: str) -> None:
    principal = principal_of(Peer(peer))
    assert str(principal).startswith(name)
    assert principal.roles == frozenset(Role)


def test_a_caller_on_an_unknown_transport_may_do_nothing() -> None:
    assert principal_of(Peer("vsock:3")).roles == frozenset()
