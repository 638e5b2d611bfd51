"""The life of the real Python SDK against the embedded service: python3 test/parity/local_sdk.py

Needs TINKER_BASE_URL and TINKER_API_KEY of a running service; test/python/localSdk.test.ts starts one and runs this, with the
session poller off and on. Every claim is an assert; the last line is "ok".
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import parity_venv

parity_venv.enter()

import numpy as np  # noqa: E402
import tinker  # noqa: E402
from tinker import types  # noqa: E402
from tinker.lib.public_interfaces.admin_client import AdminClient  # noqa: E402

warnings.simplefilter("ignore")

QUESTION, ANSWER = b"Q: sky? A:", b" blue."
ADAM = types.AdamParams(learning_rate=0.003, beta2=0.95, grad_clip_norm=1.0)
STARTED = time.monotonic()


def done(what: str) -> None:
    print(f"{time.monotonic() - STARTED:6.2f} s  {what}", flush=True)


def datum() -> types.Datum:
    tokens = list(QUESTION + ANSWER)
    weights = [0.0] * (len(QUESTION) - 1) + [1.0] * len(ANSWER)
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=tokens[1:], dtype="int64"),
            "weights": types.TensorData(data=weights, dtype="float32"),
        },
    )


def step(client: tinker.TrainingClient) -> float:
    """Both requests are sent before either result is awaited."""
    passed = client.forward_backward([datum(), datum()], "cross_entropy")
    stepped = client.optim_step(ADAM)
    output = passed.result()
    assert stepped.result().metrics is not None
    assert len(output.loss_fn_outputs) == 2
    assert output.loss_fn_outputs[0]["logprobs"].to_numpy().shape == (len(QUESTION + ANSWER) - 1,)
    assert output.metrics["clock_cycle:unique"] >= 1
    return output.metrics["loss:sum"]


def train(service: tinker.ServiceClient, base_model: str) -> tinker.TrainingClient:
    client = service.create_lora_training_client(
        base_model, rank=8, seed=7, train_unembed=False, user_metadata={"purpose": "parity"}
    )
    info = client.get_info()
    assert info.model_data.model_name == base_model and info.is_lora and info.lora_rank == 8
    losses = [step(client) for _ in range(30)]
    assert losses[-1] < losses[0] / 4, losses
    done(f"training: loss {losses[0]:.2f} to {losses[-1]:.3f}")

    before = client.forward([datum()], "cross_entropy").result().metrics["loss:sum"]
    again = client.forward([datum()], "cross_entropy").result().metrics["loss:sum"]
    assert before == again, "a forward pass must change nothing"
    try:
        client.forward_backward([datum()], "stable_reinforce").result()
        raise SystemExit("an unknown loss must fail")
    except tinker.RequestFailedError as error:
        assert error.category is types.RequestErrorCategory.User, error
    done("forward and a user error")
    return client


def custom_loss(service: tinker.ServiceClient, client: tinker.TrainingClient) -> None:
    if importlib.util.find_spec("torch") is None:
        done("custom loss: skipped by the SDK's own need for torch")
        return

    def squared(data, logprobs):  # noqa: ANN001, ANN202
        loss = sum((p**2).sum() for p in logprobs)
        return loss, {"squared": float(loss)}

    output = client.forward_backward_custom([datum()], squared).result()
    assert output.metrics["squared"] > 0
    done("custom loss on the client")
    if not service.holder.get_client_config().custom_loss_server_side:
        return

    def neg_ll(logprobs, weights):  # noqa: ANN001, ANN202
        loss = -(logprobs * weights).sum()
        return loss, {"custom/neg_ll:sum": loss}

    handle = service.create_custom_loss(neg_ll, input_ranks={"logprobs": 1, "weights": 1}).result()
    assert handle.loss_id is not None
    there = client.forward_backward_custom([datum()], handle).result().metrics
    plain = client.forward([datum()], "cross_entropy").result().metrics
    np.testing.assert_allclose(there["loss:sum"], plain["loss:sum"], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(there["custom/neg_ll:sum"], plain["loss:sum"], rtol=1e-3, atol=1e-4)
    done("custom loss on the server")


def resume(service: tinker.ServiceClient, client: tinker.TrainingClient) -> str:
    path = client.save_state("step-30", ttl_seconds=7200, user_metadata={"step": "30"}).result().path
    assert path.endswith("/weights/step-30"), path
    try:
        client.save_state("step-30").result()
        raise SystemExit("a name that is taken must fail")
    except tinker.RequestFailedError as error:
        assert error.category is types.RequestErrorCategory.User
    assert client.save_state("step-30", overwrite=True).result().path == path

    resumed = service.create_training_client_from_state_with_optimizer(path)
    assert [step(client) for _ in range(3)] == [step(resumed) for _ in range(3)], "resume must be bit-identical"
    plain = service.create_training_client_from_state(path)
    assert plain.model_id != client.model_id
    assert step(plain) > 0
    done("save, overwrite, resume with optimizer bit-identically, resume without")
    return path


def sample(service: tinker.ServiceClient, client: tinker.TrainingClient, base_model: str) -> str:
    path = client.save_weights_for_sampler("sampler-1").result().path
    sampler = service.create_sampling_client(model_path=path)
    assert sampler.get_base_model() == base_model
    prompt = types.ModelInput.from_ints(list(QUESTION))
    params = types.SamplingParams(max_tokens=len(ANSWER), temperature=0.0)
    response = sampler.sample(
        prompt, num_samples=2, sampling_params=params, include_prompt_logprobs=True,
        topk_prompt_logprobs=3, topk_sample_logprobs=2, prompt_alt_tokens_k=2,
        target_prompt_logprobs=types.TensorData(data=list(QUESTION[1:]), dtype="int64", shape=[len(QUESTION) - 1, 1]),
    ).result()  # fmt: skip
    assert [bytes(s.tokens) for s in response.sequences] == [ANSWER, ANSWER]
    assert len({s.sequence_id for s in response.sequences}) == 2
    assert response.sequences[0].stop_reason == "length"
    assert len(response.prompt_logprobs) == len(QUESTION) and response.prompt_logprobs[0] is None
    assert all(len(row) == 3 for row in response.topk_prompt_logprobs[1:])
    assert all(len(row) == 2 for row in response.sequences[0].topk_logprobs)
    assert response.prompt_alt_tokens.tokens.shape == [len(QUESTION) - 1, 2]
    np.testing.assert_allclose(response.target_prompt_logprobs.to_numpy().ravel(), response.prompt_logprobs[1:], atol=1e-4)

    stopped = sampler.sample(
        prompt, 1, types.SamplingParams(max_tokens=50, temperature=0.0, stop="blue")
    ).result().sequences[0]  # fmt: skip
    assert stopped.stop_reason == "stop" and bytes(stopped.tokens) == b" blue"
    seeded = types.SamplingParams(max_tokens=8, seed=5)
    first, second = (sampler.sample(prompt, 4, seeded).result() for _ in range(2))
    assert [s.tokens for s in first.sequences] == [s.tokens for s in second.sequences]

    many = [sampler.sample(prompt, 1, params) for _ in range(40)]
    assert {bytes(future.result().sequences[0].tokens) for future in many} == {ANSWER}

    clone = tinker.SamplingClient.from_sampler_handle(sampler.get_sampler_handle())
    assert bytes(clone.sample(prompt, 1, params).result().sequences[0].tokens) == ANSWER
    ephemeral = client.save_weights_and_get_sampling_client()
    assert bytes(ephemeral.sample(prompt, 1, params).result().sequences[0].tokens) == ANSWER
    base = service.create_sampling_client(base_model=base_model)
    whole = types.ModelInput.from_ints(list(QUESTION + ANSWER))
    trained, untrained = (s.compute_logprobs(whole).result() for s in (sampler, base))
    assert trained[0] is None and sum(trained[-len(ANSWER) :]) > sum(untrained[-len(ANSWER) :]) + 5
    assert bytes(base.sample(prompt, 1, params).result().sequences[0].tokens) != ANSWER
    done("sampler: top-k, targets, alternatives, stop, seed, compute_logprobs, clone, ephemeral, base")
    return path


def checkpoints(rest: tinker.RestClient, client: tinker.TrainingClient, path: str) -> None:
    listed = {c.checkpoint_id: c for c in rest.list_checkpoints(client.model_id).result().checkpoints}
    assert set(listed) == {"weights/step-30", "sampler_weights/sampler-1"}, listed
    assert listed["weights/step-30"].size_bytes > 1000 and not listed["weights/step-30"].public

    rest.publish_checkpoint_from_tinker_path(path).result()
    rest.set_checkpoint_ttl_from_tinker_path(path, 3600).result()
    (mine,) = [c for c in rest.list_user_checkpoints(limit=50).result().checkpoints if c.tinker_path == path]
    assert mine.public and timedelta(minutes=58) < mine.expires_at - datetime.now(UTC) < timedelta(minutes=61)
    rest.unpublish_checkpoint_from_tinker_path(path).result()
    rest.set_checkpoint_ttl_from_tinker_path(path, None).result()
    (mine,) = [c for c in rest.list_user_checkpoints(limit=50).result().checkpoints if c.tinker_path == path]
    assert not mine.public and mine.expires_at is None

    weights = rest.get_weights_info_by_tinker_path(path).result()
    assert weights.lora_rank == 8 and weights.train_unembed is False and weights.train_mlp
    run = rest.get_training_run_by_tinker_path(path).result()
    assert run.training_run_id == client.model_id and run.last_checkpoint.tinker_path == path
    assert run.user_metadata == {"purpose": "parity"}
    runs = rest.list_training_runs(limit=2).result()
    assert len(runs.training_runs) == 2 and runs.cursor.total_count >= 3
    done("list, publish, ttl, weights info, training runs")


def download(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tinker.cli", "checkpoint", "download", path, "--output", folder]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stdout + result.stderr
        (target,) = Path(folder).iterdir()
        config = json.loads((target / "adapter_config.json").read_text())
        assert config["peft_type"] == "LORA" and config["r"] == 8
        size = int.from_bytes((target / "adapter_model.safetensors").read_bytes()[:8], "little")
        header = json.loads((target / "adapter_model.safetensors").read_bytes()[8 : 8 + size])
        assert any("lora_A" in name for name in header) and any("lora_B" in name for name in header)
    done("tinker checkpoint download")


def copy_and_delete(service: tinker.ServiceClient, rest: tinker.RestClient, path: str) -> None:
    copied = rest.copy_weights(path, destination_project_id="archive", ttl_seconds=3600).result()
    assert copied != path and copied.endswith("/weights/step-30")
    assert step(service.create_training_client_from_state_with_optimizer(copied)) > 0
    rest.delete_checkpoint_from_tinker_path(copied).result()
    try:
        rest.get_weights_info_by_tinker_path(copied).result()
        raise SystemExit("a deleted checkpoint must be gone")
    except tinker.NotFoundError:
        pass
    assert rest.get_weights_info_by_tinker_path(path).result().lora_rank == 8, "the source of a copy must stay"
    done("copy and delete")


def sessions(service: tinker.ServiceClient, rest: tinker.RestClient, client: tinker.TrainingClient) -> None:
    session_id = service.holder.get_session_id()
    assert session_id in rest.list_sessions(limit=50).result().sessions
    session = rest.get_session(session_id).result()
    assert client.model_id in session.training_run_ids and len(session.sampler_ids) >= 3
    assert session.user_metadata == {"suite": "parity"}
    rest.assign_session_project(session_id, "project-1").result()
    query = types.SessionSearchRequest(
        project_ids=["project-1"], user_metadata={"suite": "parity"},
        statuses=[types.ActiveSessionStatusQuery()], limit=1,
    )  # fmt: skip
    (found,) = rest.search_sessions(query).result().sessions
    assert found.session_id == session_id and found.checkpoints_count >= 2
    with urllib.request.urlopen(rest.export_session_trace(session_id).result()) as response:
        events = json.load(response)["traceEvents"]
    assert {"ForwardBackward", "OptimStep", "Sample"} <= {event["name"] for event in events}

    admin = AdminClient()
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    usage = admin.get_billing_usage(hour - timedelta(hours=1), hour + timedelta(hours=1)).result()
    kinds = {event.event_info.type for event in usage.data if event.session_id == session_id}
    assert {"training", "sampling_prefill", "sampling_sample", "checkpoint", "storage"} <= kinds, kinds
    assert all(event.estimated_cost_usd is None for event in usage.data)
    assert admin.get_current_checkpoint_storage_usage().result().data[0].checkpoint_count >= 2
    assert {"checkpoint_create", "checkpoint_delete"} <= {e.event for e in admin.get_audit_log("checkpoints").result().entries}
    done("sessions, search, project, trace, billing, audit")


def main() -> None:
    service = tinker.ServiceClient(user_metadata={"suite": "parity"})
    (base_model, *_) = [model.model_name for model in service.get_server_capabilities().supported_models]
    done(f"capabilities: {base_model}, session poller {os.environ.get('LOCAL_SDK_POLLER', 'off')}")
    rest = tinker.RestClient() if hasattr(tinker, "RestClient") else service.create_rest_client()
    client = train(service, base_model)
    custom_loss(service, client)
    # Gradients that were gathered and not applied are no part of a checkpoint.
    client.optim_step(types.AdamParams(learning_rate=0.0)).result()
    path = resume(service, client)
    sample(service, client, base_model)
    checkpoints(rest, client, path)
    download(path)
    copy_and_delete(service, rest, path)
    sessions(service, rest, client)
    service.close("success", detail="parity").result()
    query = types.SessionSearchRequest(statuses=[types.ClientFinishedSessionStatusQuery(reasons=["success"])])
    assert "parity" in {s.status.detail for s in rest.search_sessions(query).result().sessions}
    print("ok")


if __name__ == "__main__":
    main()
