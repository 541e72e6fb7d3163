"""Server reflection: tools like grpcurl list the services and messages of the daemon.

It is off by default: clients have stubs, and reflection is one more service to attack. This module
loads what only reflection needs.
"""

import grpc.aio
from grpc_reflection.v1alpha import reflection

from dssd.rpc.server import SERVICES


def register(server: grpc.aio.Server) -> None:
    """Have the server tell of all services that it has."""
    names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
