"""Futures: polls and what they answer, the session poller, cancelling, what happens on 429 and 410."""

from __future__ import annotations

import time

import tinker
from tinker import types

from ..recording import Recording, scenario
from ..server import Answer
from .losses import datum

PROMPT = tinker.ModelInput.from_ints([1, 2, 3, 4, 5])
PARAMS = tinker.SamplingParams(max_tokens=3)
TRY_AGAIN = {"type": "try_again", "request_id": "any", "queue_state": "paused_capacity", "queue_state_reason": "busy"}


@scenario("polls-training", "an optim_step and a forward_backward whose polls answer: try again, 408, 503, metadata only, then the result")
def polls_training(recording: Recording) -> None:
    trainer = recording.trainer()
    answers = [
        Answer(json=TRY_AGAIN),
        Answer(status=408, json={**TRY_AGAIN, "queue_state": "paused_rate_limit"}),
        Answer(status=503, json={"detail": "restarting"}),
        Answer(json={"status": "complete_metadata", "response_payload_size": 1024}),
    ]
    for seq_id in (1, 2):
        recording.answers.scripted[f"retrieve_future session-1:train:0:{seq_id}"].extend(answers)
    recording.result("optim_step", trainer.optim_step(types.AdamParams()))
    recording.result("forward_backward", trainer.forward_backward([datum(weights=[1.0, 1.0, 1.0])], "cross_entropy"))


@scenario("polls-sampling", "a sample whose polls answer: try again, metadata only, then the result")
def polls_sampling(recording: Recording) -> None:
    sampler = recording.sampler()
    recording.answers.scripted["retrieve_future session-1:sample:0:0"].extend(
        [Answer(json=TRY_AGAIN), Answer(json={"status": "complete_metadata", "response_payload_size": 1024})]
    )
    recording.result("sample", sampler.sample(PROMPT, 1, PARAMS))


@scenario("polls-failed", "operations that fail: an error of the user, one of the server, one without a category; then one that works")
def polls_failed(recording: Recording) -> None:
    trainer = recording.trainer()
    for seq_id, answer in enumerate(
        ({"error": "bad tensor", "category": "user"}, {"error": "broke", "category": "server"}, {"error": "what"}), 1
    ):
        recording.answers.scripted[f"retrieve_future session-1:train:0:{seq_id}"].append(Answer(json=answer))
        recording.result(f"optim_step {seq_id}", trainer.optim_step(types.AdamParams()))
    recording.result("optim_step 4", trainer.optim_step(types.AdamParams()))


@scenario("sample-429", "a sample answered with 429 twice goes out again under its number; a second one waits and keeps its own")
def sample_429(recording: Recording) -> None:
    sampler = recording.sampler()
    recording.answers.scripted["asample"].extend([Answer(status=429, json={"detail": "slow down"})] * 2)
    recording.result("sample", sampler.sample(PROMPT, 1, PARAMS))
    recording.result("sample", sampler.sample(PROMPT, 1, PARAMS))


@scenario("sample-410", "a sample whose promise is gone (410) goes out again under a new number, with new sequence ids")
def sample_410(recording: Recording) -> None:
    sampler = recording.sampler()
    recording.answers.scripted["retrieve_future session-1:sample:0:0"].append(Answer(status=410, json={"detail": "gone"}))
    recording.result("sample", sampler.sample(PROMPT, 2, PARAMS))


@scenario("send-503", "a forward_backward whose send answers 503 twice goes out again under its number")
def send_503(recording: Recording) -> None:
    trainer = recording.trainer()
    headers = {"retry-after-ms": "1"}
    recording.answers.scripted["forward_backward"].extend([Answer(status=503, json={"detail": "busy"}, headers=headers)] * 2)
    recording.result("forward_backward", trainer.forward_backward([datum(weights=[1.0, 1.0, 1.0])], "cross_entropy"))
    recording.result("optim_step", trainer.optim_step(types.AdamParams()))


@scenario(
    "retrieve-futures",
    "flag sample_use_retrieve_futures: three samples one after another through the session's poller, then one more poll",
    config={"sample_use_retrieve_futures": True},
)
def retrieve_futures(recording: Recording) -> None:
    sampler = recording.sampler()
    for count in range(1, 4):
        recording.result("sample", sampler.sample(PROMPT, 1, PARAMS))
        # The poll that reports the fetched result is held by the server until the next sample is there.
        _wait_for(recording, "retrieve_futures", count + 1)


@scenario(
    "retrieve-futures-clone",
    "the same poller on a client made from a handle, numbered by the server",
    config={"sample_use_retrieve_futures": True, "sample_join_sampling_session": True},
)
def retrieve_futures_clone(recording: Recording) -> None:
    handle = recording.sampler().get_sampler_handle()
    clone = tinker.SamplingClient.from_sampler_handle(handle, api_key="tml-recorded-key")
    recording.result("sample", clone.sample(PROMPT, 1, PARAMS))
    _wait_for(recording, "retrieve_futures", 2)


@scenario(
    "cancel",
    "a sample cancelled while it is being polled: cancel_future",
    dynamic_config={"sample_cancel_enabled": True},
)
def cancel(recording: Recording) -> None:
    sampler = recording.sampler()
    held = [Answer(status=503, json={"detail": "not yet"})] * 100_000
    recording.answers.scripted["retrieve_future session-1:sample:0:0"].extend(held)
    future = sampler.sample(PROMPT, 1, PARAMS)
    _wait_for(recording, "retrieve_future", 1)
    future.cancel()
    _wait_for(recording, "cancel_future", 1)
    recording.forget_polls = True


@scenario("cancel-off", "the same where the server does not allow it: nothing is sent")
def cancel_off(recording: Recording) -> None:
    sampler = recording.sampler()
    held = [Answer(status=503, json={"detail": "not yet"})] * 100_000
    recording.answers.scripted["retrieve_future session-1:sample:0:0"].extend(held)
    future = sampler.sample(PROMPT, 1, PARAMS)
    _wait_for(recording, "retrieve_future", 1)
    future.cancel()
    time.sleep(0.3)
    recording.forget_polls = True


def _wait_for(recording: Recording, path: str, count: int) -> None:
    deadline = time.monotonic() + 10
    while len(recording.seen(path)) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {path}")
        time.sleep(0.01)
