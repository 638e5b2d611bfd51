"""Turns recorded exchanges into a fixture: what is random named or dropped, order made repeatable."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import tinker
import zstandard
from tinker.proto import tinker_public_pb2 as pb

from .plain import message
from .server import Answer, Exchange

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
# Longer bodies are told by their size and the digest of their JSON form.
MAX_BODY_BYTES = 4096
_HEADERS = ("accept", "content-type", "content-encoding", "x-api-key", "x-idempotency-key")
_HEADER_PREFIXES = ("x-tinker-", "x-sdk-", "cf-access-", "x-recorded-")
# Fields of telemetry that no two runs share.
_VARYING = {
    *("timestamp", "duration", "elapsed_time", "start_time", "current_time"),
    *("traceback", "exception_stack", "request_headers", "response_headers"),
}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def write(folder: str, name: str, content: dict[str, object]) -> Path:
    path = RECORDED / folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_layout(content) + "\n")
    return path


def _layout(value: object, indent: str = "") -> str:
    """JSON with everything on one line that fits there, so that a fixture reads like a table."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(line) + len(indent) <= 140 or not isinstance(value, (dict, list)):
        return line
    inner = indent + " "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _layout(item, inner) for item in value) + f"\n{indent}]"
    items = (f"{inner}{json.dumps(key)}: {_layout(item, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"


def header(script: str, how: str) -> dict[str, object]:
    return {"by": f"test/parity/{script}", "sdk": f"tinker {tinker.__version__}", "how": how}


class Normaliser:
    """Replaces known secrets and random values by names; `names` maps the text to its name."""

    def __init__(self, names: dict[str, str]):
        self._names = names

    def text(self, value: str) -> str:
        for text, name in self._names.items():
            value = value.replace(text, name)
        return _UUID.sub("<uuid>", value)

    def value(self, value: object, key: str = "") -> object:
        if key in _VARYING:
            return f"<{key}>"
        if isinstance(value, dict):
            return {name: self.value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            # The SDK collects tags in a set.
            return sorted(items) if key == "tags" else items
        return self.text(value) if isinstance(value, str) else value


def exchange_json(exchange: Exchange, normaliser: Normaliser) -> dict[str, object]:
    request: dict[str, object] = {"method": exchange.method, "path": normaliser.text(exchange.path)}
    if exchange.query:
        request["query"] = {name: normaliser.text(value) for name, value in exchange.query}
    request["headers"] = _headers(exchange, normaliser)
    if exchange.body:
        request["body"] = _body(exchange, normaliser)
    return {"request": request, "response": _answer(exchange.answer)}


def _headers(exchange: Exchange, normaliser: Normaliser) -> dict[str, str]:
    kept = {}
    for name, value in sorted(exchange.headers.items()):
        if name == "x-idempotency-key":
            kept[name] = "<key>"
        elif name == "x-tinker-create-promise-roundtrip-time":
            kept[name] = "<seconds>"
        elif name in _HEADERS or name.startswith(_HEADER_PREFIXES):
            kept[name] = normaliser.text(value)
    return kept


def _body(exchange: Exchange, normaliser: Normaliser) -> dict[str, object]:
    if exchange.headers.get("content-type") != "application/x-protobuf":
        return {"json": normaliser.value(json.loads(exchange.body))}
    body = exchange.body
    if exchange.headers.get("content-encoding") == "zstd":
        body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
    request = pb.ForwardBackwardRequest.FromString(body)
    decoded = message(request)
    if len(body) <= MAX_BODY_BYTES:
        # Maps leave the SDK in an order that changes from process to process; here they are sorted.
        stable = request.SerializeToString(deterministic=True)
        return {"protobuf": base64.b64encode(stable).decode(), "decoded": decoded}
    text = json.dumps(decoded, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    data = decoded.pop("data")
    return {
        "bytes": len(body),
        "decoded": decoded,
        "datums": len(data),
        # Of the whole JSON form with sorted keys and no spaces.
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def _answer(answer: Answer | None) -> dict[str, object]:
    if answer is None:
        return {"status": 0}
    content: dict[str, object] = {"status": answer.status}
    if answer.headers:
        content["headers"] = answer.headers
    if answer.protobuf is not None:
        content["protobuf"] = base64.b64encode(answer.protobuf).decode()
    elif answer.status != 204:
        # As it was sent: a test that replays it needs real times and a real token.
        content["json"] = answer.json
    return content
