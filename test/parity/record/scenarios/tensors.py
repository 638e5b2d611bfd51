"""What a datum can hold: tensors of every kind, chunks of every kind, provenance."""

from __future__ import annotations

import numpy as np
import tinker
from tinker import types

from ..recording import Recording, scenario

# The smallest files that are what they say; no server here looks inside.
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9")
# dtype byte 0, two dimensions, 3 × 2, then the data: three positions.
DMEL = bytes([0, 2, 3, 2, 1, 2, 3, 4, 5, 6])


def _datum(length: int, **inputs: object) -> types.Datum:
    return types.Datum(model_input=tinker.ModelInput.from_ints(list(range(1, length + 1))), loss_fn_inputs=inputs)


def _tensor(dtype: str, data: list[float], shape: list[int], **sparse: list[int]) -> types.TensorData:
    return types.TensorData(data=data, dtype=dtype, shape=shape, **sparse)


TENSORS: dict[str, types.Datum] = {
    "lists": _datum(3, target_tokens=[2, 3, 4], weights=[0.1, 1, -2.5]),
    "integers for a float input": _datum(3, target_tokens=[2, 3, 4], weights=[1, 0, 1]),
    "numpy int32 and float64": _datum(2, target_tokens=np.array([2, 3], np.int32), weights=np.array([0.1, 1e-30])),
    "numpy int16 and float16": _datum(2, target_tokens=np.array([2, 3], np.int16), weights=np.array([0.1, 2], np.float16)),
    "numpy int64 and float32": _datum(2, target_tokens=np.array([2, 3], np.int64), weights=np.array([0.1, 2], np.float32)),
    "two dimensions, lists": _datum(2, target_tokens=[[2, 3], [4, 5]], weights=[[0.5, 0.5], [1.0, 0.25]]),
    "two dimensions, numpy": _datum(2, target_tokens=np.array([[2, 3], [4, 5]]), weights=np.array([[0.5, 0.5], [1.0, 0.25]])),
    "sparse": _datum(
        4,
        target_tokens=_tensor("int64", [7, 9], [4, 8], sparse_crow_indices=[0, 1, 1, 2, 2], sparse_col_indices=[3, 0]),
        weights=_tensor("float32", [0.5, 0.25], [4, 8], sparse_crow_indices=[0, 1, 1, 2, 2], sparse_col_indices=[3, 0]),
    ),
    "wide integers": _datum(2, target_tokens=[2, 3], wide=_tensor("int64", [2**40, -1], [2])),
    "float32 edges": _datum(2, target_tokens=[2, 3], weights=_tensor("float32", [3.4028234663852886e38, 1e-45], [2])),
    "a scalar": _datum(2, target_tokens=[2, 3], scale=_tensor("float32", [1.5], [])),
    "no values": _datum(2, target_tokens=[2, 3], none=_tensor("float32", [], [0])),
    "no inputs": _datum(2),
}


@scenario("tensors", "one forward_backward per kind of tensor; `kinds` names them in order")
def tensors(recording: Recording) -> None:
    trainer = recording.trainer()
    recording.extra["kinds"] = list(TENSORS)
    for kind, datum in TENSORS.items():
        recording.result(kind, trainer.forward_backward([datum], "cross_entropy"))


TEXT = types.EncodedTextChunk(tokens=[1, 2])
CHUNKS: dict[str, list[types.ModelInputChunk]] = {
    "text in two chunks": [TEXT, types.EncodedTextChunk(tokens=[3])],
    "png": [TEXT, types.ImageChunk(data=PNG, format="png"), TEXT],
    "png, tokens expected": [types.ImageChunk(data=PNG, format="png", expected_tokens=4), TEXT],
    "jpeg, tokens expected": [types.ImageChunk(data=JPEG, format="jpeg", expected_tokens=1), TEXT],
    "dmel": [types.DmelChunk(dmel=DMEL), TEXT],
    "empty text": [types.EncodedTextChunk(tokens=[]), TEXT],
    # Last, because a refused call leaves a gap in the SDK's seq ids.
    "asset pointer": [types.ImageAssetPointerChunk(location="assets/one.png", format="png"), TEXT],
    "asset pointer, tokens expected": [
        types.ImageAssetPointerChunk(location="assets/one.jpg", format="jpeg", expected_tokens=3), TEXT],
}


@scenario("chunks-training", "one forward_backward per kind of chunk, targets 1, 2 … to the end of a text, else 1, 2; the SDK has no protobuf form of an asset pointer")
def chunks_training(recording: Recording) -> None:
    trainer = recording.trainer()
    recording.extra["kinds"] = list(CHUNKS)
    for kind, chunks in CHUNKS.items():
        text = all(chunk.type == "encoded_text" for chunk in chunks)
        targets = list(range(1, sum(chunk.length for chunk in chunks) + 1)) if text else [1, 2]
        datum = types.Datum(model_input=tinker.ModelInput(chunks=chunks), loss_fn_inputs={"target_tokens": targets})
        recording.result(kind, trainer.forward_backward([datum], "cross_entropy"))


@scenario("chunks-sampling", "one sample per kind of chunk, the same kinds as in chunks-training")
def chunks_sampling(recording: Recording) -> None:
    sampler = recording.sampler()
    recording.extra["kinds"] = list(CHUNKS)
    for kind, chunks in CHUNKS.items():
        prompt = tinker.ModelInput(chunks=chunks)
        recording.result(kind, sampler.sample(prompt, 1, tinker.SamplingParams(max_tokens=3)))


@scenario("model-input", "ModelInput without any request: lengths, tokens, appending")
def model_input(recording: Recording) -> None:
    for kind, chunks in CHUNKS.items():
        try:
            recording.result(f"length {kind}", tinker.ModelInput(chunks=chunks).length)
        except ValueError as error:
            recording.result(f"length {kind}", error)
    joined = tinker.ModelInput.from_ints([1]).append(types.EncodedTextChunk(tokens=[2, 3])).append_int(4)
    recording.result("appended", [chunk.model_dump(mode="json") for chunk in joined.chunks])
    recording.result("to_ints", joined.to_ints())
    recording.result("empty", tinker.ModelInput.empty().length)


@scenario("provenance", "forward_backward with provenance spans, one batch with and without")
def provenance(recording: Recording) -> None:
    trainer = recording.trainer()
    plain = _datum(4, target_tokens=[2, 3, 4, 5], weights=[0.0, 0.0, 1.0, 1.0])
    spans = plain.with_provenance(
        model_input=[
            types.PromptProvenanceSpan(sequence_id="session-1:sample:0:0:0", length=2),
            types.SampledProvenanceSpan(sequence_id="session-1:sample:0:0:0", length=1),
            types.SampledProvenanceSpan(sequence_id="session-1:sample:0:1:0", offset=5, length=1),
        ],
        loss_fn_inputs=[
            types.PromptProvenanceSpan(sequence_id="session-1:sample:0:0:0", offset=1, length=1),
            types.SampledProvenanceSpan(sequence_id="session-1:sample:0:0:0", length=3),
        ],
    )
    recording.result("forward_backward", trainer.forward_backward([spans, plain], "cross_entropy"))
