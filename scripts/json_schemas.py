"""The JSON schema of what `dssctl -o json` prints, made of the descriptions of fields."""

from typing import Any

from dssctl.fields import KINDS, Field, Type, fields_of
from dssctl.output.model import API_VERSION

Schema = dict[str, Any]

_TYPES: dict[Type, Schema] = {
    Type.TEXT: {"type": "string"},
    Type.NUMBER: {"type": "integer"},
    Type.FRACTION: {"type": "number"},
    Type.RATE: {"type": "number"},
    Type.BYTES: {"type": "integer"},
    Type.SPAN: {"type": "integer"},
    Type.SECONDS: {"type": "integer"},
    Type.MOMENT: {"type": "string", "format": "date-time", "pattern": "Z$"},
    Type.TRUTH: {"type": "boolean"},
    Type.TEXTS: {"type": "array", "items": {"type": "string"}},
    Type.RANGES: {
        "type": "array",
        "items": {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 2,
            "maxItems": 2,
        },
    },
    Type.FIELDS: {},
}


def schema() -> Schema:
    """A document is a list of a kind, one of a kind, or an error."""
    documents = [_document(f"{kind}List", "items", _list_of(kind)) for kind in KINDS]
    documents += [_document(kind, "item", _reference(kind)) for kind in KINDS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{API_VERSION}.schema.json",
        "title": "What dssctl -o json prints",
        "description": "A line of -o jsonl is an item without the envelope; of --watch it has a "
        "field event, too: ADDED, CHANGED or GONE. --columns leaves out what it does not name.",
        "oneOf": [*documents, {"$ref": "#/$defs/Error"}],
        "$defs": {
            **{kind: _item(fields_of(kind)) for kind in KINDS},
            "Error": _ERROR,
        },
    }


def _document(kind: str, member: str, of: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            member: of,
        },
        "required": ["apiVersion", "kind", member],
        "additionalProperties": False,
    }


def _item(fields: tuple[Field, ...]) -> Schema:
    return {
        "type": "object",
        "properties": {field.name: _field(field) for field in fields},
        "required": [field.name for field in fields if not field.absent],
        "additionalProperties": False,
    }


def _field(field: Field) -> Schema:
    described = _list_of(field.kind) if field.type is Type.ITEMS else _TYPES[field.type]
    if field.optional and described:
        described = {"anyOf": [described, {"type": "null"}]}
    return {"description": field.help, **described}


def _list_of(kind: str) -> Schema:
    return {"type": "array", "items": _reference(kind)}


def _reference(kind: str) -> Schema:
    return {"$ref": f"#/$defs/{kind}"}


_ERROR: Schema = {
    "type": "object",
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": "Error"},
        "code": {"type": "string", "pattern": "^DSS[0-9]{4}$"},
        "message": {"type": "string"},
        "hint": {"type": "string"},
        "fields": {"type": "object", "additionalProperties": {"type": "string"}},
        "definite": {"type": "boolean"},
    },
    "required": ["apiVersion", "kind", "code", "message", "hint", "fields", "definite"],
    "additionalProperties": False,
}
