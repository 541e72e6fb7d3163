"""How a condition travels: the one place that turns a `DssError` into gRPC's terms.

A unary call, and a streaming one that ends by an error, is aborted with the condition's status;
the condition itself, serialised, is in the trailing metadata ``dss-error-bin``. On a bidirectional
call a condition that concerns one item is itself an item of the answer, made by `to_proto`.
"""

from collections import Counter
from typing import Any, NoReturn

import grpc
import grpc.aio

from dss_api.v1 import types_pb2
from dss_core.errors import DssError

ERROR_FIELD_BYTES_MAX = 512
"""The length to which a field is cut, because trailing metadata is small and a reply holds many
refusals."""


ERROR_METADATA_KEY = "dss-error-bin"

_ELLIPSIS = "…"

told: Counter[str] = Counter()
"""How often this process told a client of each condition, by its code."""


def to_proto(error: DssError) -> types_pb2.Error:
    """The condition as it goes over the wire, which counts it as told."""
    told[error.code] += 1
    return types_pb2.Error(
        code=error.code,
        message=_cut(error.message),
        hint=_cut(error.hint_text),
        fields={name: _cut(value) for name, value in error.fields.items()},
        definite=error.definite,
    )


def status_of(error: DssError) -> grpc.StatusCode:
    """The gRPC status that carries the condition."""
    return grpc.StatusCode[error.grpc_status]


async def abort(context: "grpc.aio.ServicerContext[Any, Any]", error: DssError) -> NoReturn:
    """End the call with the condition.

    Raises:
        grpc.aio.AbortError: always; gRPC ends the call with it.
    """
    packed = to_proto(error)
    await context.abort(
        status_of(error),
        packed.message,
        trailing_metadata=((ERROR_METADATA_KEY, packed.SerializeToString()),),
    )
    raise AssertionError("abort returned")


def _cut(text: str) -> str:
    encoded = text.encode()
    if len(encoded) <= ERROR_FIELD_BYTES_MAX:
        return text
    kept = encoded[: ERROR_FIELD_BYTES_MAX - len(_ELLIPSIS.encode())]
    return kept.decode(errors="ignore") + _ELLIPSIS
