"""JSON schemas of what `edge.translate` makes of the protos' messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from edge import translate
from edge.proto_docs import describe
from edge.words import WORDS, Words

Schema = dict[str, Any]

_SCALARS: Mapping[str, Schema] = {
    "double": {"type": "number"},
    "float": {"type": "number"},
    "int32": {"type": "integer"},
    "int64": {"type": "integer"},
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
}
_SCALAR_NAMES = {
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
}
_PICTURE = {"type": "string", "format": "uri", "examples": ["https://face.example/static/annotations/<id>.png"]}


def message_schemas(descriptor: Descriptor) -> dict[str, Schema]:
    """JSON schemas of a message and of every message in it, by name, for `translate.to_json`'s output."""
    schemas: dict[str, Schema] = {}
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        if message.name in schemas:
            continue
        properties = _properties(message)
        schemas[message.name] = {
            "type": "object",
            "description": describe(message),
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        values = map(translate.value_field, message.fields)
        waiting += [value.message_type for value in values if value.message_type and not translate.is_image(value)]
    return schemas


def _properties(message: Descriptor) -> dict[str, Schema]:
    """Of every field, and of the words behind names that have any."""
    properties: dict[str, Schema] = {}
    for field in message.fields:
        properties[translate.json_name(field)] = schema = _field_schema(field)
        if words := WORDS.get(field):
            schema["description"] += _meanings(words)
            properties[words.key] = or_null({"type": "string"}, words.description)
    return properties


def _meanings(words: Words) -> str:
    return "".join(f" `{name}`: {text.en.rstrip('.')}." for name, text in words.by_name.items())


def _field_schema(field: FieldDescriptor) -> Schema:
    one = _value_schema(translate.value_field(field))
    if translate.is_map(field):
        schema: Schema = {"type": "object", "additionalProperties": one}
    elif field.is_repeated:
        schema = {"type": "array", "items": one}
    elif translate.is_nullable(field):
        schema = {"anyOf": [one, {"type": "null"}]}
    else:
        schema = one
    return {**schema, "description": describe(field)}


def _value_schema(field: FieldDescriptor) -> Schema:
    if translate.is_image(field):
        return dict(_PICTURE)
    if field.message_type is not None:
        return ref(field.message_type.name)
    if field.enum_type is not None:
        enum = field.enum_type
        names = [translate.enum_name(enum, number) for number in sorted(enum.values_by_number) if number != 0]
        return {"type": "string", "enum": names, "description": describe(enum)}
    if words := WORDS.get(field):
        return {"type": "string", "enum": list(words.by_name)}
    return dict(_SCALARS[_SCALAR_NAMES[field.type]])


def or_null(schema: Schema, description: str) -> Schema:
    """What `schema` says, or null."""
    return {"anyOf": [schema, {"type": "null"}], "description": description}


def ref(name: str) -> Schema:
    """A schema that stands in `components`."""
    return {"$ref": f"#/components/schemas/{name}"}
