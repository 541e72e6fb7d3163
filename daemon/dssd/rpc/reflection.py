"""Reflection: tools like grpcurl ask the daemon what it serves, and in which messages.

Off unless it is wanted: clients have their stubs, and it is one more thing to call. This module
loads what only reflection needs.
"""

import grpc.aio
from grpc_reflection.v1alpha import reflection

from dssd.rpc.server import SERVICES


def register(server: grpc.aio.Server) -> None:
    """Have the server tell of all services that it has."""
    names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
