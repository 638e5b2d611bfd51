"""Sampling: sessions, parameters, numbering, clones."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace

import tinker
from tinker import types
from tinker.lib.public_interfaces import sampling_client

from ..recording import API_KEY, Recording, scenario

PROMPT = tinker.ModelInput.from_ints([1, 2, 3, 4, 5])
PARAMS = tinker.SamplingParams(max_tokens=3)


def _target(**sparse: list[int]) -> types.TensorData:
    if sparse:
        return types.TensorData(data=[7, 9], dtype="int64", shape=[4, 2], **sparse)
    return types.TensorData(data=[7, -1, 8, 9, -1, -1, 3, 4], dtype="int64", shape=[4, 2])


@scenario("create-sampler", "create_sampling_client: base_model, model_path, both; get_base_model")
def create_sampler(recording: Recording) -> None:
    service = recording.service()
    path = "tinker://run-1/sampler_weights/0001"
    sampler = service.create_sampling_client(base_model="Qwen/Qwen3-8B")
    service.create_sampling_client(model_path=path)
    service.create_sampling_client(model_path=path, base_model="Qwen/Qwen3-8B")
    recording.result("get_base_model", sampler.get_base_model())


@scenario("sampling-params", "sample with each sampling parameter; stop as text, list of text, list of tokens, empty, absent")
def sampling_params(recording: Recording) -> None:
    sampler = recording.sampler()
    for call, params in (
        ("nothing", tinker.SamplingParams()),
        ("max_tokens", PARAMS),
        ("every number", tinker.SamplingParams(max_tokens=3, seed=7, temperature=0.5, top_k=20, top_p=0.875)),
        ("greedy", tinker.SamplingParams(max_tokens=3, temperature=0.0)),
        ("stop text", tinker.SamplingParams(max_tokens=3, stop="\n\n")),
        ("stop texts", tinker.SamplingParams(max_tokens=3, stop=["\n\n", "Ende: ü"])),
        ("stop tokens", tinker.SamplingParams(max_tokens=3, stop=[151643, 0])),
        ("stop nothing", tinker.SamplingParams(max_tokens=3, stop=[])),
    ):
        recording.result(call, sampler.sample(PROMPT, 1, params))


@scenario("sample-options", "sample with each option of the call")
def sample_options(recording: Recording) -> None:
    sampler = recording.sampler()
    for call, count, options in (
        ("three samples", 3, {}),
        ("include_prompt_logprobs", 1, {"include_prompt_logprobs": True}),
        ("prompt_logprobs_last_n", 1, {"include_prompt_logprobs": True, "prompt_logprobs_last_n": 2}),
        ("topk_prompt_logprobs", 1, {"include_prompt_logprobs": True, "topk_prompt_logprobs": 2}),
        ("topk_sample_logprobs", 2, {"topk_sample_logprobs": 2}),
        ("target_prompt_logprobs", 1, {"target_prompt_logprobs": _target()}),
        (
            "target_prompt_logprobs sparse",
            1,
            {"target_prompt_logprobs": _target(sparse_crow_indices=[0, 1, 1, 1, 2], sparse_col_indices=[0, 1])},
        ),
        ("prompt_alt_tokens_k", 1, {"prompt_alt_tokens_k": 2}),
    ):
        recording.result(call, sampler.sample(PROMPT, count, PARAMS, **options))


@scenario("record-stability-info", "a sampler with record_stability_info")
def record_stability_info(recording: Recording) -> None:
    recording.result("sample", recording.sampler(record_stability_info=True).sample(PROMPT, 1, PARAMS))


@scenario("compute-logprobs", "compute_logprobs of the whole prompt and of its last two tokens")
def compute_logprobs(recording: Recording) -> None:
    sampler = recording.sampler()
    recording.result("compute_logprobs", sampler.compute_logprobs(PROMPT))
    recording.result("compute_logprobs last_n", sampler.compute_logprobs(PROMPT, 2))


@scenario("sampling-seq-ids", "four samples at once, on two samplers", racing=("asample",))
def sampling_seq_ids(recording: Recording) -> None:
    service = recording.service()
    samplers = [service.create_sampling_client(base_model="Qwen/Qwen3-8B") for _ in range(2)]
    # The second sampler starts when the first has finished, so that the fixture's order is its own.
    for sampler in samplers:
        futures = [sampler.sample(PROMPT, 1, PARAMS) for _ in range(4)]
        for future in futures:
            recording.result("sample", future)


def _handle(recording: Recording) -> None:
    sampler = recording.sampler()
    handle = sampler.get_sampler_handle()
    recording.extra["handle"] = json.loads(base64.urlsafe_b64decode(handle))
    # The random clone number, made repeatable.
    sampling_client.uuid = SimpleNamespace(uuid4=lambda: 41)
    clones = [sampling_client.SamplingClient.from_sampler_handle(handle, api_key=API_KEY)]
    sampling_client.uuid = SimpleNamespace(uuid4=lambda: 42)
    clones.append(sampling_client.SamplingClient.from_sampler_handle(handle, api_key=API_KEY))
    for clone in clones:
        recording.result("sample", clone.sample(PROMPT, 1, PARAMS))
        recording.result("sample", clone.sample(PROMPT, 1, PARAMS))
    recording.result("original", sampler.sample(PROMPT, 1, PARAMS))


@scenario("sampler-handle", "two clients from one handle, with clone numbers 42 and 43 in place of random ones, then the original")
def sampler_handle(recording: Recording) -> None:
    _handle(recording)


@scenario(
    "sampler-handle-join",
    "the same with the flag sample_join_sampling_session: the server numbers the clones",
    config={"sample_join_sampling_session": True},
)
def sampler_handle_join(recording: Recording) -> None:
    _handle(recording)
