"""Sessions: creation, configuration, heartbeat, telemetry, end."""

from __future__ import annotations

import time

import tinker

from ..recording import API_KEY, Recording, scenario
from ..server import Answer


@scenario("capabilities", "get_server_capabilities() of a fresh ServiceClient: no session is made")
def capabilities(recording: Recording) -> None:
    service = recording.service()
    recording.result("get_server_capabilities", service.get_server_capabilities())
    recording.extra["console_url"] = service.get_console_url()


@scenario(
    "session-options",
    "every option of ServiceClient(), with TINKER_TAGS and the Cloudflare variables set; then close('success')",
    env={
        "TINKER_TAGS": "beta,alpha",
        "TINKER_PROJECT_ID": "not-used",
        "CLOUDFLARE_ACCESS_CLIENT_ID": "access-id",
        "CLOUDFLARE_ACCESS_CLIENT_SECRET": "access-secret",
    },
)
def session_options(recording: Recording) -> None:
    service = recording.service(
        user_metadata={"purpose": "parity", "run": "1"},
        project_id="project-1",
        display_name="a name",
        default_headers_overrides={"X-Recorded-Extra": "yes"},
    )
    service.create_sampling_client(base_model="Qwen/Qwen3-8B")
    recording.extra["console_url"] = service.get_console_url()
    service.close("success").result()


@scenario(
    "session-environment",
    "ServiceClient() without any argument: key, base URL and project come from the environment",
    env={"TINKER_API_KEY": API_KEY, "TINKER_PROJECT_ID": "project-2"},
)
def session_environment(recording: Recording) -> None:
    import os

    os.environ["TINKER_BASE_URL"] = f"{recording.base_url}/"
    service = tinker.ServiceClient()
    service.create_sampling_client(base_model="Qwen/Qwen3-8B")
    service.close("success").result()


@scenario("session-finish", "three services, closed with each status; one without a detail")
def session_finish(recording: Recording) -> None:
    for status, detail in (("success", "all done"), ("errored", "out of luck"), ("interrupted", None)):
        service = recording.service()
        service.create_sampling_client(base_model="Qwen/Qwen3-8B")
        service.close(status, detail=detail).result()
        service.close("success").result()  # the first one wins, nothing is sent


@scenario("heartbeat", "a session left alone for a little over ten seconds")
def heartbeat(recording: Recording) -> None:
    recording.sampler()
    created = recording.seen("create_session")[0].at
    while not recording.seen("session_heartbeat"):
        time.sleep(0.1)
    recording.extra["seconds_to_first_heartbeat"] = round(recording.seen("session_heartbeat")[0].at - created)


@scenario(
    "telemetry",
    "telemetry on; a sample refused with 422 (the user's error), a promise that answers 404 (a fatal error), close",
    env={"TINKER_TELEMETRY": "1"},
)
def telemetry(recording: Recording) -> None:
    service = recording.service()
    sampler = service.create_sampling_client(base_model="Qwen/Qwen3-8B")
    prompt = tinker.ModelInput.from_ints([1, 2, 3])
    recording.answers.scripted["asample"].append(Answer(status=422, json={"detail": "no such parameter"}))
    recording.result("sample refused", sampler.sample(prompt, 1, tinker.SamplingParams(max_tokens=1)))
    recording.answers.scripted["retrieve_future session-1:sample:0:1"].append(Answer(status=404, json={"detail": "gone"}))
    recording.result("sample lost", sampler.sample(prompt, 1, tinker.SamplingParams(max_tokens=1)))
    service.close("errored").result()


@scenario("jwt", "flag pjwt_auth_enabled: the key is exchanged for a JWT, which then is the X-API-Key", config={"pjwt_auth_enabled": True})
def jwt(recording: Recording) -> None:
    recording.sampler()
    rest = tinker.RestClient(base_url=recording.base_url, api_key=API_KEY)
    recording.result("whoami", rest.whoami())


@scenario(
    "credential-command",
    "credential_default_source is credential_cmd: TINKER_CREDENTIAL_CMD is run for the exchange, although a key is given",
    config={"pjwt_auth_enabled": True, "credential_default_source": "credential_cmd"},
    env={"TINKER_CREDENTIAL_CMD": "echo tml-from-the-command"},
)
def credential_command(recording: Recording) -> None:
    recording.sampler()
