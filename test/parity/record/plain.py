"""SDK values as plain JSON: what the Python caller gets to see."""

from __future__ import annotations

import base64
import dataclasses
import math

import numpy as np
import pydantic
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from tinker import types
from tinker.types.topk_logprobs import TopkLogprobs

# JSON knows no NaN and no infinities.
_SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$number": _SPECIAL[str(value)]}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, types.TensorData):
        tensor = {"dtype": value.dtype, "shape": value.shape, "data": plain(value.data)}
        if value.sparse_crow_indices is not None:
            tensor["crow_indices"] = value.sparse_crow_indices
            tensor["col_indices"] = value.sparse_col_indices
        return tensor
    if isinstance(value, TopkLogprobs):
        length, k = value.token_ids.shape
        return {
            "k": k,
            "length": length,
            "token_ids": plain(value.token_ids.ravel()),
            "logprobs": plain(value.logprobs.ravel()),
        }
    if isinstance(value, pydantic.BaseModel):
        return plain(value.model_dump(mode="json", exclude_none=True))
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            name.removesuffix("_np"): plain(field)
            for name, field in fields.items()
            if field is not None and not name.startswith("_")
        }
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    raise TypeError(f"no plain form for {type(value).__name__}")


def message(value: Message) -> object:
    """The standard JSON form of a protobuf message: bytes in base64, int64 as text, enums by name."""
    return _sorted(MessageToDict(value, preserving_proto_field_name=True))


def _sorted(value: object) -> object:
    # Maps of a message have no order of their own.
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
