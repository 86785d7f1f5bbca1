"""Parse the protobuf messages of an ONNX model, skipping fields that are not needed.

This is the only module that knows ONNX's field numbers. It is imported in the engine's child and must need nothing but
the standard library.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

Bytes = bytes | mmap.mmap
# (number, value, end): `end` is -1 for a number, else the field's bytes lie from `value` to `end`.
Field = tuple[int, int, int]
_FIXED_BYTES = {1: 8, 5: 4}


class DamagedError(ValueError):
    """The bytes do not follow the wire format."""


def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned number at `at`, and where the next thing begins."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise DamagedError("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise DamagedError("a number does not end")


def message_fields(data: Bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message between `at` and `end`."""
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise DamagedError("a field has number 0")
        if kind == 0:
            value, at = _varint(data, at, end)
            yield number, value, -1
            continue
        if kind == 2:
            length, at = _varint(data, at, end)
        elif kind in _FIXED_BYTES:
            length = _FIXED_BYTES[kind]
        else:
            raise DamagedError(f"a field has the unknown wire type {kind}")
        if length > end - at:
            raise DamagedError("a field is longer than its message")
        yield number, at, at + length
        at += length


def _as_signed(value: int) -> int:
    """Read an unsigned 64-bit number as two's complement, as protobuf's int64 is written."""
    return value - 2**64 if value >= 2**63 else value


def read_number(field: Field) -> int:
    if field[2] != -1:
        raise DamagedError(f"field {field[0]} is not a number")
    return _as_signed(field[1])


def span(field: Field) -> tuple[int, int]:
    if field[2] == -1:
        raise DamagedError(f"field {field[0]} is a number where a message or text belongs")
    return field[1], field[2]


def read_string(data: Bytes, field: Field) -> str:
    begin, end = span(field)
    try:
        return data[begin:end].decode()
    except UnicodeDecodeError as exc:
        raise DamagedError("a text is not UTF-8") from exc


def read_integers(data: Bytes, field: Field) -> list[int]:
    """Read a repeated int64, of which each may stand alone or all be packed into one field."""
    if field[2] == -1:
        return [_as_signed(field[1])]
    at, end = span(field)
    found: list[int] = []
    while at < end:
        value, at = _varint(data, at, end)
        found.append(_as_signed(value))
    return found


def floats(data: Bytes, field: Field) -> list[float]:
    """Read a repeated float, packed or not."""
    begin, end = span(field)
    if (end - begin) % 4:
        raise DamagedError("a float is cut off")
    return list(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))


# TensorProto.DataType: its names in numpy's words, and bits an element where the type has a fixed size.
_TYPES: tuple[tuple[str, int], ...] = (
    ("undefined", 0), ("float32", 32), ("uint8", 8), ("int8", 8), ("uint16", 16), ("int16", 16), ("int32", 32),
    ("int64", 64), ("str", 0), ("bool", 8), ("float16", 16), ("float64", 64), ("uint32", 32), ("uint64", 64),
    ("complex64", 64), ("complex128", 128), ("bfloat16", 16), ("float8_e4m3fn", 8), ("float8_e4m3fnuz", 8),
    ("float8_e5m2", 8), ("float8_e5m2fnuz", 8), ("uint4", 4), ("int4", 4), ("float4_e2m1", 4), ("float8_e8m0", 8),
    ("uint2", 2), ("int2", 2), ("float6_e2m3", 6), ("float6_e3m2", 6),
)  # fmt: skip
DTYPES = tuple(name for name, _ in _TYPES)
_BITS = dict(_TYPES)
# The kinds of TypeProto that are no plain tensor, by field number.
_OTHER_KINDS = {4: "sequence", 5: "map", 7: "opaque", 8: "sparse", 9: "optional"}
# Attributes beyond this size (trees of a forest, compiled blobs) say nothing that is asked here.
_LONG_ATTRIBUTE_BYTES = 2**16
_DEEPEST_GRAPH = 16
_LONGEST_LIST = 16  # of whole numbers that may be a shape


@dataclass(frozen=True)
class Value:
    """An input or output. A dimension is an int (fixed), a str (dynamic) or None; no `dims` is an unknown rank."""

    name: str
    dtype: str
    dims: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Tensor:
    """A stored tensor. `location` is its external file; `data` is where its raw bytes lie in this one; `integers` are
    the contents of a short list of whole numbers, as shapes are."""

    name: str
    dtype: str
    dims: tuple[int, ...]
    byte_size: int
    location: str | None = None
    data: tuple[int, int] | None = None
    integers: tuple[int, ...] = ()


Attribute = int | float | str | tuple[int | float, ...] | Tensor | None


@dataclass(frozen=True)
class Node:
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass
class Model:
    """What has been read so far. `nested` and `inner_nodes` hold the initializers and nodes of graphs inside nodes."""

    ir_version: int = 0
    opset: int = 0
    producer: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    initializers: list[Tensor] = field(default_factory=list)
    nested: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inner_nodes: list[Node] = field(default_factory=list)


def parse_model(data: Bytes) -> Model:
    """Read a ModelProto."""
    model, producer, has_graph = Model(), ["", ""], False
    versions: dict[str, int] = {}
    for item in message_fields(data, 0, len(data)):
        if item[0] == 1:
            model.ir_version = read_number(item)
        elif item[0] in (2, 3):
            producer[item[0] - 2] = read_string(data, item)
        elif item[0] == 7:
            has_graph = True
            _graph(data, item, model, depth=0)
        elif item[0] == 8:
            versions.update([_opset(data, item)])
        elif item[0] == 14:
            model.metadata.update([_pair(data, item)])
    if not has_graph:
        raise DamagedError("it has no graph")
    model.producer = " ".join(filter(None, producer))
    # A file of one special domain alone (trees, for one) has no default operators; then that domain's version tells.
    model.opset = versions.get("", max(versions.values(), default=0))
    return model


def _opset(data: Bytes, item: Field) -> tuple[str, int]:
    domain, version = "", 0
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            domain = read_string(data, part)
        elif part[0] == 2:
            version = read_number(part)
    return ("" if domain == "ai.onnx" else domain), version


def _pair(data: Bytes, item: Field) -> tuple[str, str]:
    """Read a StringStringEntryProto."""
    found = {part[0]: read_string(data, part) for part in message_fields(data, *span(item)) if part[0] in (1, 2)}
    return found.get(1, ""), found.get(2, "")


def _graph(data: Bytes, item: Field, model: Model, *, depth: int) -> None:
    """Add a GraphProto to the model; of a nested one, only the initializers and nodes."""
    if depth > _DEEPEST_GRAPH:
        raise DamagedError("graphs are nested too deeply")
    initializers = model.initializers if depth == 0 else model.nested
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            node = _node(data, part, model, depth)
            (model.nodes if depth == 0 else model.inner_nodes).append(node)
        elif part[0] == 5:
            initializers.append(_tensor(data, part))
        elif part[0] == 15:
            initializers.append(_sparse_values(data, part))
        elif part[0] in (11, 12) and depth == 0:
            (model.inputs if part[0] == 11 else model.outputs).append(_value(data, part))


def _node(data: Bytes, item: Field, model: Model, depth: int) -> Node:
    inputs: list[str] = []
    outputs: list[str] = []
    words = {4: "", 7: ""}
    attributes: dict[str, Attribute] = {}
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            inputs.append(read_string(data, part))
        elif part[0] == 2:
            outputs.append(read_string(data, part))
        elif part[0] in words:
            words[part[0]] = read_string(data, part)
        elif part[0] == 5:
            attributes.update([_attribute(data, part, model, depth)])
    return Node(words[4], words[7], tuple(inputs), tuple(outputs), attributes)


def _attribute(data: Bytes, item: Field, model: Model, depth: int) -> tuple[str, Attribute]:
    name = ""
    single: Attribute = None
    many: list[int | float] = []
    is_long = item[2] - item[1] > _LONG_ATTRIBUTE_BYTES
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            name = read_string(data, part)
        elif part[0] in (6, 11):
            _graph(data, part, model, depth=depth + 1)
        elif part[0] == 5:
            single = _tensor(data, part)
        elif is_long:
            break
        elif part[0] in _SINGLE:
            single = _SINGLE[part[0]](data, part)
        elif part[0] in (7, 8):
            many += floats(data, part) if part[0] == 7 else read_integers(data, part)
    return name, tuple(many) if many else single


def _tensor(data: Bytes, item: Field) -> Tensor:
    """Read a TensorProto without its contents."""
    dims: list[int] = []
    external: dict[str, str] = {}
    last: dict[int, Field] = {}
    text_bytes = 0
    listed: list[int] = []
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            dims += read_integers(data, part)
        elif part[0] == 7:
            listed += read_integers(data, part) if len(listed) < _LONGEST_LIST else ()
        elif part[0] == 6:
            text_bytes += part[2] - part[1]
        elif part[0] == 13:
            external.update([_pair(data, part)])
        elif part[0] in (2, 8, 9, 14):
            last[part[0]] = part
    name = read_string(data, last[8]) if 8 in last else ""
    dtype = _dtype(read_number(last[2]) if 2 in last else 0)
    if any(dim < 0 for dim in dims):
        raise DamagedError(f"tensor {name!r} has a negative dimension")
    size = text_bytes if dtype == "str" else (math.prod(dims) * _BITS[dtype] + 7) // 8
    if 14 in last and read_number(last[14]) == 1:
        return Tensor(name, dtype, tuple(dims), size, location=external.get("location", ""))
    raw = span(last[9]) if 9 in last else None
    # Six-bit types come in groups of four, of which the last may be padded.
    if raw is not None and raw[1] - raw[0] != size and _BITS[dtype] != 6:
        raise DamagedError(f"tensor {name!r} has {raw[1] - raw[0]} bytes, but its shape needs {size}")
    integers = _short_list(data, raw, listed, math.prod(dims)) if dtype == "int64" and len(dims) < 2 else ()
    return Tensor(name, dtype, tuple(dims), size, data=raw, integers=integers)


def _short_list(data: Bytes, raw: tuple[int, int] | None, listed: list[int], count: int) -> tuple[int, ...]:
    """Return whole numbers that are few, wherever the tensor keeps them."""
    if count > _LONGEST_LIST:
        return ()
    if raw is not None:
        return struct.unpack(f"<{count}q", data[raw[0] : raw[1]])
    return tuple(listed) if len(listed) == count else ()


def _sparse_values(data: Bytes, item: Field) -> Tensor:
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            return _tensor(data, part)
    raise DamagedError("a sparse tensor has no values")


def _dtype(kind: int) -> str:
    if 0 <= kind < len(DTYPES):
        return DTYPES[kind]
    raise DamagedError(f"a tensor has the unknown element type {kind}")


def _value(data: Bytes, item: Field) -> Value:
    """Read a ValueInfoProto."""
    name, dtype = "", "undefined"
    dims: tuple[int | str | None, ...] | None = None
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            name = read_string(data, part)
        elif part[0] == 2:
            for kind in message_fields(data, *span(part)):
                if kind[0] == 1:
                    dtype, dims = _tensor_type(data, kind)
                else:
                    dtype = _OTHER_KINDS.get(kind[0], dtype)
    return Value(name, dtype, dims)


def _tensor_type(data: Bytes, item: Field) -> tuple[str, tuple[int | str | None, ...] | None]:
    dtype = "undefined"
    dims: tuple[int | str | None, ...] | None = None
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            dtype = _dtype(read_number(part))
        elif part[0] == 2:
            dims = tuple(_dim(data, dim) for dim in message_fields(data, *span(part)) if dim[0] == 1)
    return dtype, dims


def _dim(data: Bytes, item: Field) -> int | str | None:
    """Read one dimension; old exporters write 0 or -1 where they mean any size, and others a name that is none."""
    for part in message_fields(data, *span(item)):
        if part[0] == 1:
            return value if (value := read_number(part)) > 0 else None
        if part[0] == 2:
            name = read_string(data, part)
            return None if name in ("", "?", "-1", "None") else name
    return None


def _single_text(data: Bytes, part: Field) -> str:
    # Attribute texts are bytes by ONNX's rules, and need not be UTF-8.
    begin, end = span(part)
    return data[begin:end].decode(errors="replace")


def _single_float(data: Bytes, part: Field) -> float:
    found = floats(data, part)
    if len(found) != 1:
        raise DamagedError("a float attribute is not a single number")
    return found[0]


def _single_number(_: Bytes, part: Field) -> int:
    return read_number(part)


_SINGLE: dict[int, Callable[[Bytes, Field], int | float | str]] = {
    2: _single_float, 3: _single_number, 4: _single_text,
}  # fmt: skip
