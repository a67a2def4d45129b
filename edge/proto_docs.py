"""The comments of the protos at run time: they ship as docstrings of the typed stubs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor


def describe(item: Descriptor | EnumDescriptor | FieldDescriptor) -> str:
    """The comment of a message, an enum or a field; empty where the stubs are not installed."""
    holder = item.containing_type if isinstance(item, FieldDescriptor) else item
    return _comments(holder.file.name).get(item.full_name, "") if holder is not None else ""


@cache
def _comments(proto: str) -> Mapping[str, str]:
    """Comments of one proto file (`hair/analysis/v1/common.proto`) by full name."""
    package, _, module = proto.removesuffix(".proto").rpartition("/")
    stub = resources.files(package.replace("/", ".")).joinpath(f"{module}_pb2.pyi")
    if not stub.is_file():
        return {}
    return dict(_walk(ast.parse(stub.read_text("utf-8")), package.replace("/", ".")))


def _walk(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, str]]:
    """Classes, properties and annotated attributes with the string that stands in or right below them."""
    below = [*parent.body[1:], None]
    for node, following in zip(parent.body, below, strict=True):
        if isinstance(node, ast.ClassDef):
            name = f"{prefix}.{node.name}"
            yield name, ast.get_docstring(node) or ""
            yield from _walk(node, name)
        elif isinstance(node, ast.FunctionDef):
            yield f"{prefix}.{node.name}", ast.get_docstring(node) or ""
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            match following:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield f"{prefix}.{node.target.id}", text
