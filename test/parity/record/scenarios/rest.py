"""RestClient and AdminClient: every method. And the two calls of `tinker auth`."""

from __future__ import annotations

from datetime import date, datetime, timezone

import httpx
import tinker
from tinker import types
from tinker.cli.auth_api import TinkerAuthApi
from tinker.lib.public_interfaces import rest_client

from ..recording import API_KEY, Recording, scenario
from ..server import Answer

PATH = "tinker://run-1/weights/0001"
CREATED = datetime(2026, 7, 13, 8, tzinfo=timezone.utc)


@scenario("rest", "every method of RestClient, bare and with every argument")
def rest(recording: Recording) -> None:
    client = tinker.RestClient(base_url=recording.base_url, api_key=API_KEY)
    for call, result in (
        ("get_training_run", lambda: client.get_training_run("run-1")),
        ("get_training_run accessible", lambda: client.get_training_run("run-1", access_scope="accessible")),
        ("get_training_run_by_tinker_path", lambda: client.get_training_run_by_tinker_path(PATH, access_scope="accessible")),
        ("get_weights_info_by_tinker_path", lambda: client.get_weights_info_by_tinker_path(PATH)),
        ("list_training_runs", lambda: client.list_training_runs()),
        ("list_training_runs all", lambda: client.list_training_runs(5, 10, "accessible", "project-1")),
        ("list_checkpoints", lambda: client.list_checkpoints("run-1")),
        ("get_external_weights_urls", lambda: client.get_external_weights_urls("tinker://run-1/external_weights/hf")),
        ("delete_checkpoint", lambda: client.delete_checkpoint("run-1", "weights/0001")),
        ("delete_checkpoint_from_tinker_path", lambda: client.delete_checkpoint_from_tinker_path("tinker://run-1/sampler_weights/a b")),
        ("publish_checkpoint_from_tinker_path", lambda: client.publish_checkpoint_from_tinker_path(PATH)),
        ("unpublish_checkpoint_from_tinker_path", lambda: client.unpublish_checkpoint_from_tinker_path(PATH)),
        ("set_checkpoint_ttl_from_tinker_path", lambda: client.set_checkpoint_ttl_from_tinker_path(PATH, 86400)),
        ("set_checkpoint_ttl_from_tinker_path none", lambda: client.set_checkpoint_ttl_from_tinker_path(PATH, None)),
        ("list_user_checkpoints", lambda: client.list_user_checkpoints()),
        ("list_user_checkpoints all", lambda: client.list_user_checkpoints(5, 10)),
        ("get_session", lambda: client.get_session("session-1")),
        ("get_session accessible", lambda: client.get_session("session-1", "accessible")),
        ("list_sessions", lambda: client.list_sessions()),
        ("list_sessions all", lambda: client.list_sessions(5, 10, "accessible")),
        ("assign_session_project", lambda: client.assign_session_project("session-1", "project-1")),
        ("get_sampler", lambda: client.get_sampler("session-1:sample:0")),
    ):
        recording.result(call, result())


@scenario("rest-trace", "export_session_trace: pending once, then ready; and one that failed")
def rest_trace(recording: Recording) -> None:
    rest_client._TRACE_EXPORT_POLL_INTERVAL_SECONDS = 0.05
    client = tinker.RestClient(base_url=recording.base_url, api_key=API_KEY)
    recording.answers.scripted["sessions/session-1/trace_export"].append(Answer(json={"status": "pending"}))
    recording.result("export_session_trace", client.export_session_trace("session-1"))
    recording.answers.scripted["sessions/session-2/trace_export"].append(Answer(json={"status": "failed", "error": "too old"}))
    recording.result("export_session_trace failed", client.export_session_trace("session-2"))


@scenario("rest-search", "search_sessions by default, with every field, and with each owner and status")
def rest_search(recording: Recording) -> None:
    client = tinker.RestClient(base_url=recording.base_url, api_key=API_KEY)
    every = types.SessionSearchRequest(
        session_id="session-1",
        project_ids=["project-1"],
        user_metadata={"purpose": "parity"},
        display_name="nightly",
        owner=types.UserSearchOwner(owner_urns=["tml:user:1"]),
        statuses=[
            types.ActiveSessionStatusQuery(),
            types.CancelledSessionStatusQuery(),
            types.FailedSessionStatusQuery(),
            types.ClientFinishedSessionStatusQuery(),
            types.ClientFinishedSessionStatusQuery(reasons=["errored", "interrupted"]),
        ],
        limit=10,
        cursor=types.SessionSearchCursor(last_created_at=CREATED, last_session_id="session-9"),
    )
    recording.result("search_sessions", client.search_sessions(types.SessionSearchRequest()))
    recording.result("search_sessions every", client.search_sessions(every))
    accessible = types.SessionSearchRequest(owner=types.AccessibleSearchOwner())
    recording.result("search_sessions accessible", client.search_sessions(accessible))


@scenario("admin", "every method of AdminClient, times given as text and as values")
def admin(recording: Recording) -> None:
    client = tinker.AdminClient(base_url=recording.base_url, api_key=API_KEY)
    for call, result in (
        ("get_audit_log", lambda: client.get_audit_log()),
        ("get_audit_log all", lambda: client.get_audit_log("checkpoints", date(2026, 7, 13))),
        ("get_billing_usage text", lambda: client.get_billing_usage("2026-07-13T08:00:00Z", "2026-07-14T08:00:00Z")),
        ("get_billing_usage values", lambda: client.get_billing_usage(CREATED, CREATED.replace(day=14))),
        ("get_current_checkpoint_storage_usage", lambda: client.get_current_checkpoint_storage_usage()),
        ("get_current_checkpoint_storage_usage project", lambda: client.get_current_checkpoint_storage_usage("project-1")),
    ):
        recording.result(call, result())


@scenario("api-key", "the calls of `tinker auth login` and `tinker auth logout`")
def api_key(recording: Recording) -> None:
    with httpx.Client() as http:
        api = TinkerAuthApi(http, base_url=recording.base_url)
        recording.result("get_self_api_key", api.get_self_api_key(API_KEY))
        api.delete_self_api_key(API_KEY)
