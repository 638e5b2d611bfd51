"""Canned answers of the REST endpoints: fixed times, fixed names."""

from __future__ import annotations

import base64
import json
import re

from .server import Answer, Exchange

TIME = "2026-07-13T08:00:00Z"
CHECKPOINT = {
    "checkpoint_id": "weights/0001",
    "checkpoint_type": "training",
    "time": TIME,
    "tinker_path": "tinker://run-1/weights/0001",
    "size_bytes": 1024,
    "public": False,
    "user_metadata": {"step": "1"},
    "expires_at": "2026-07-20T08:00:00Z",
}
TRAINING_RUN = {
    "training_run_id": "run-1",
    "base_model": "Qwen/Qwen3-8B",
    "model_owner": "tml:user:1",
    "is_lora": True,
    "corrupted": False,
    "lora_rank": 32,
    "last_request_time": TIME,
    "last_checkpoint": CHECKPOINT,
    "user_metadata": {"purpose": "parity"},
}
SESSION_SUMMARY = {
    "session_id": "session-1",
    "created_at": TIME,
    "owner": "tml:user:1",
    "project_id": "project-1",
    "status": {"type": "client_finished", "reason": {"type": "success"}, "detail": "done"},
    "checkpoints_count": 2,
    "display_name": "nightly",
    "user_metadata": {"purpose": "parity"},
    "checkpoint_storage_bytes": 2048,
}


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


# Valid until the year 2100; nobody checks the signature.
JWT_CLAIMS = {"exp": 4102444800, "sub": "tml:user:1", "org_id": "1", "email": "who@example.com", "iss": "passport-test"}
JWT = f"{_part({'alg': 'none'})}.{_part(JWT_CLAIMS)}.signature"

_CURSOR = {"offset": 0, "limit": 20, "total_count": 1}
_BILLING_EVENTS = [
    {"type": "training", "token_count": 1000},
    {"type": "sampling_prefill", "cached": True, "token_count": 500},
    {"type": "sampling_sample", "token_count": 20},
    {"type": "checkpoint", "count": 1},
    {"type": "storage", "gigabyte_hours": 1.5},
]
_STORAGE = {"project_id": "project-1", "checkpoint_count": 2, "size_bytes": 2048, "size_gigabytes": 0.5}

_ROUTES: list[tuple[str, str, object]] = [
    ("GET", r"get_server_capabilities", {"supported_models": [
        {"model_name": "Qwen/Qwen3-8B", "max_context_length": 32768, "trainable": True, "sampleable": True}]}),
    ("GET", r"healthz", {"status": "ok"}),
    ("POST", r"auth/token", {"jwt": JWT}),
    ("GET", r"auth/apikey/me", {"key_id": 1, "name": "laptop", "note": "", "details": {
        "org_details": {"name": "Example"}, "user_details": {"email": "who@example.com"}}}),
    ("DELETE", r"auth/apikey/me", None),
    ("POST", r"sessions/search", {"sessions": [SESSION_SUMMARY],
        "next_cursor": {"last_created_at": TIME, "last_session_id": "session-1"}}),
    ("POST", r"sessions/[^/]+/finish", None),
    ("PUT", r"sessions/[^/]+/project", None),
    ("GET", r"sessions/[^/]+/trace_export", {"status": "ready", "url": "https://files.example.com/session.pftrace"}),
    ("GET", r"sessions/[^/]+", {"training_run_ids": ["run-1"], "sampler_ids": ["session-1:sample:0"],
        "user_metadata": {"purpose": "parity"}, "display_name": "nightly"}),
    ("GET", r"sessions", {"sessions": ["session-1", "session-2"]}),
    ("GET", r"training_runs", {"training_runs": [TRAINING_RUN], "cursor": _CURSOR}),
    ("GET", r"training_runs/[^/]+/checkpoints", {"checkpoints": [CHECKPOINT]}),
    ("GET", r"training_runs/.+/external_weights_urls", {
        "urls": {"adapter_config.json": "https://files.example.com/adapter_config.json"}, "expires": TIME}),
    ("GET", r"training_runs/[^/]+", TRAINING_RUN),
    ("POST", r"training_runs/.+/publish", None),
    ("PUT", r"training_runs/.+/ttl", None),
    ("DELETE", r"training_runs/.+", None),
    ("GET", r"checkpoints", {"checkpoints": [CHECKPOINT], "cursor": _CURSOR}),
    ("GET", r"samplers/[^/]+", {"sampler_id": "session-1:sample:0", "base_model": "Qwen/Qwen3-8B",
        "model_path": "tinker://run-1/sampler_weights/0001"}),
    ("POST", r"copy_weights", {"tinker_path": "tinker://run-2/weights/0001"}),
    ("GET", r"audit", {"entries": [{"timestamp": TIME, "event": "checkpoint_deleted",
        "event_details": {"by": "tml:user:1"}, "model_id": "run-1"}]}),
    ("GET", r"billing/usage/events", {"data": [
        {"bucket_start": TIME, "bucket_end": "2026-07-13T09:00:00Z", "base_model": "Qwen/Qwen3-8B",
         "session_id": "session-1", "estimated_cost_usd": 0.25, "event_info": info} for info in _BILLING_EVENTS],
        "sessions": {"session-1": {"user_metadata": {"purpose": "parity"}}}, "cost_data_through": TIME}),
    ("GET", r"billing/usage/checkpoints/current", {"data": [_STORAGE], "effective_rate_usd_per_gigabyte_month": 0.5}),
]


def rest_answer(exchange: Exchange, weights_info: dict[str, object]) -> Answer:
    if exchange.path == "weights_info":
        return Answer(json=weights_info)
    for method, pattern, value in _ROUTES:
        if method == exchange.method and re.fullmatch(pattern, exchange.path):
            return Answer(status=204) if value is None else Answer(json=value)
    return Answer(json={})
