"""forward and forward_backward with every loss."""

from __future__ import annotations

import tinker
from tinker import types

from ..recording import Recording, scenario


def datum(**inputs: object) -> types.Datum:
    return types.Datum(
        model_input=tinker.ModelInput.from_ints([1, 2, 3]),
        loss_fn_inputs={"target_tokens": [2, 3, 4], **inputs},
    )


RATIO = {"logprobs": [-0.5, -0.25, -0.125], "advantages": [1.0, 0.0, -1.0]}
CLIP = {"clip_low_threshold": 0.875, "clip_high_threshold": 1.25}
CALLS: list[tuple[str, list[types.Datum], dict[str, float | str] | None]] = [
    ("cross_entropy", [datum(weights=[0.0, 1.0, 0.5])], None),
    ("importance_sampling", [datum(**RATIO)], None),
    ("ppo", [datum(**RATIO)], CLIP),
    ("ppo", [datum(**RATIO, clip_low_threshold=[0.5, 0.5, 0.5], clip_high_threshold=[1.5, 1.5, 1.5])], None),
    ("cispo", [datum(**RATIO)], CLIP),
    ("dro", [datum(**RATIO)], {"beta": 0.05}),
    ("gspo", [datum(**RATIO, sequence_ratio_mask=[0.0, 1.0, 1.0])], CLIP),
    ("stable_reinforce", [datum(**RATIO)], {"kl_coeff": 0.1, "baseline": "leave-one-out"}),
    ("cross_entropy", [datum(weights=[1, 0, 1]), datum(weights=[1.0, 1.0, 1.0])], None),
    ("stable_reinforce", [datum(**RATIO)], {"whole": 1}),
    ("custom", [datum(weights=[1.0, 1.0, 1.0])], {"loss_id": "session-1:loss:0"}),
]


@scenario("forward-backward", "forward_backward with each loss and its config, one after another")
def forward_backward(recording: Recording) -> None:
    trainer = recording.trainer()
    for loss_fn, data, config in CALLS:
        recording.result(f"forward_backward {loss_fn}", trainer.forward_backward(data, loss_fn, config))


@scenario("forward", "forward: a forward_backward with forward_only set")
def forward(recording: Recording) -> None:
    trainer = recording.trainer()
    recording.result("forward", trainer.forward([datum(weights=[1.0, 1.0, 1.0])], "cross_entropy"))
    recording.result("forward ppo", trainer.forward([datum(**RATIO)], "ppo", CLIP))


@scenario("forward-backward-zstd", "flag proto_compress_fwdbwd: the body is compressed, told here uncompressed", config={"proto_compress_fwdbwd": True})
def compressed(recording: Recording) -> None:
    trainer = recording.trainer()
    recording.result("forward_backward", trainer.forward_backward([datum(weights=[1.0, 1.0, 1.0])], "cross_entropy"))


@scenario("pipelined", "three times [forward_backward, optim_step], then save_state, nothing awaited in between")
def pipelined(recording: Recording) -> None:
    trainer = recording.trainer()
    futures = []
    for step in range(3):
        futures.append(trainer.forward_backward([datum(weights=[1.0, 1.0, 1.0])], "cross_entropy"))
        futures.append(trainer.optim_step(types.AdamParams(learning_rate=(step + 1) / 8)))
    futures.append(trainer.save_state("after-three"))
    for future in futures:
        recording.result("pipelined", future)
