"""Training clients: creation with every option, from a checkpoint both ways."""

from __future__ import annotations

import tinker
from tinker.types.optimizer import OptimizerConfigBase

from ..recording import WEIGHTS_TOKEN, Recording, scenario

PATH = "tinker://run-1/weights/0001"


@scenario("create-model", "create_lora_training_client: defaults, every option, dimuon, a family the SDK does not know; get_info")
def create_model(recording: Recording) -> None:
    service = recording.service()
    trainer = service.create_lora_training_client("Qwen/Qwen3-8B")
    recording.extra["console_url"] = trainer.get_console_url()
    recording.result("get_info", trainer.get_info())
    service.create_lora_training_client(
        "Qwen/Qwen3-8B",
        rank=8,
        seed=7,
        train_mlp=False,
        train_attn=True,
        train_unembed=False,
        user_metadata={"purpose": "parity"},
        optimizer=tinker.AdamOptimizerConfig(),
    )
    service.create_lora_training_client("Qwen/Qwen3-8B", optimizer=tinker.DimuonOptimizerConfig())
    service.create_lora_training_client("Qwen/Qwen3-8B", optimizer=OptimizerConfigBase(type="lion", decay=0.5))


def _from_state(recording: Recording) -> None:
    service = recording.service()
    service.create_training_client_from_state(PATH)
    service.create_training_client_from_state(
        PATH, base_model="Qwen/Qwen3-8B:long", user_metadata={"purpose": "parity"}, optimizer=tinker.DimuonOptimizerConfig()
    )
    trainer = service.create_training_client_from_state_with_optimizer(
        PATH, base_model="Qwen/Qwen3-8B:long", user_metadata={"purpose": "parity"}
    )
    # The load took the model's first number.
    recording.result("optim_step", trainer.optim_step(tinker.AdamParams()))
    service.create_training_client_from_state(PATH, weights_access_token=WEIGHTS_TOKEN)
    service.create_training_client_from_state_with_optimizer(PATH, weights_access_token=WEIGHTS_TOKEN)


@scenario("from-state", "create_training_client_from_state(…_with_optimizer): weights_info, create_model, load_weights")
def from_state(recording: Recording) -> None:
    recording.answers.weights_info = {
        "base_model": "Qwen/Qwen3-8B",
        "is_lora": True,
        "lora_rank": 16,
        "train_unembed": False,
        "train_mlp": True,
        "optimizer_config": {"type": "dimuon", "version": 1},
    }
    _from_state(recording)


@scenario(
    "from-state-one-call",
    "the same calls with the flag create_model_via_load_weights: one load_weights makes the model",
    config={"create_model_via_load_weights": True},
)
def from_state_one_call(recording: Recording) -> None:
    _from_state(recording)
