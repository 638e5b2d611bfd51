"""Saving, loading, exporting and copying weights."""

from __future__ import annotations

import tinker
from tinker import types

from ..recording import API_KEY, WEIGHTS_TOKEN, Recording, scenario

PATH = "tinker://run-1/weights/0001"


@scenario("save", "save_state, save_weights_for_sampler and save_weights_external, bare and with every option")
def save(recording: Recording) -> None:
    trainer = recording.trainer()
    metadata = {"step": "1"}
    saved = recording.result("save_state", trainer.save_state("bare"))
    recording.extra["console_url"] = saved.get_console_url()
    recording.result("save_state all", trainer.save_state("all", ttl_seconds=3600, overwrite=True, user_metadata=metadata))
    sampler = recording.result("save_weights_for_sampler", trainer.save_weights_for_sampler("bare"))
    recording.extra["sampler_console_url"] = sampler.get_console_url()
    recording.extra["sampler_playground_url"] = sampler.get_playground_url()
    recording.result(
        "save_weights_for_sampler all",
        trainer.save_weights_for_sampler("all", ttl_seconds=3600, user_metadata=metadata),
    )
    recording.result("save_weights_external", trainer.save_weights_external("bare"))
    recording.result(
        "save_weights_external all",
        trainer.save_weights_external("all", ttl_seconds=3600, age_encryption_recipients=["age1recipient"]),
    )


@scenario("load", "load_state and load_state_with_optimizer, with and without a token of another account")
def load(recording: Recording) -> None:
    trainer = recording.trainer()
    recording.result("load_state", trainer.load_state(PATH))
    recording.result("load_state token", trainer.load_state(PATH, weights_access_token=WEIGHTS_TOKEN))
    recording.result("load_state_with_optimizer", trainer.load_state_with_optimizer(PATH))
    recording.result(
        "load_state_with_optimizer token", trainer.load_state_with_optimizer(PATH, weights_access_token=WEIGHTS_TOKEN)
    )


@scenario("sampler-from-training", "samplers of a training client: ephemeral, from a path, ephemeral again; one sample each")
def sampler_from_training(recording: Recording) -> None:
    trainer = recording.trainer()
    prompt = tinker.ModelInput.from_ints([1, 2, 3])
    for call, sampler in (
        ("save_weights_and_get_sampling_client", trainer.save_weights_and_get_sampling_client()),
        ("create_sampling_client", trainer.create_sampling_client("tinker://run-1/sampler_weights/0001")),
        ("save_weights_and_get_sampling_client", trainer.save_weights_and_get_sampling_client()),
    ):
        recording.result(call, sampler.sample(prompt, 1, tinker.SamplingParams(max_tokens=3)))
    recording.result("optim_step", trainer.optim_step(types.AdamParams()))


@scenario(
    "copy-weights",
    "copy_weights of RestClient and of a ServiceClient with a project, and with TINKER_PROJECT_ID",
    env={"TINKER_PROJECT_ID": "project-of-the-environment"},
)
def copy_weights(recording: Recording) -> None:
    rest = tinker.RestClient(base_url=recording.base_url, api_key=API_KEY)
    recording.result("rest", rest.copy_weights(PATH, "project-1"))
    recording.result("rest all", rest.copy_weights(PATH, "project-1", ttl_seconds=3600, weights_access_token=WEIGHTS_TOKEN))
    recording.result("rest environment", rest.copy_weights(PATH))
    service = recording.service(project_id="project-2")
    recording.result("service", service.copy_weights(PATH, ttl_seconds=7200, weights_access_token=WEIGHTS_TOKEN))
