"""Records what the real Python SDK makes of answers: python3 test/parity/record_decode.py

Builds protobuf answers with the SDK's own message classes, decodes them with the SDK's own functions and
writes bytes and values to recorded/decode/*.json; the same for the joining of chunk results. A case on
which the SDK fails holds its error. README.md describes the format.
"""

from __future__ import annotations

import base64
import sys

sys.dont_write_bytecode = True

import parity_venv  # noqa: E402

parity_venv.enter()

import numpy as np  # noqa: E402
from google.protobuf.message import Message  # noqa: E402
from record import fixture  # noqa: E402
from record.plain import plain  # noqa: E402
from tinker import types  # noqa: E402
from tinker.lib.chunked_fwdbwd_helpers import combine_fwd_bwd_output_results  # noqa: E402
from tinker.proto import response_conv  # noqa: E402
from tinker.proto import tinker_public_pb2 as pb  # noqa: E402

NAN, INF = float("nan"), float("inf")


def f32(*values: float) -> bytes:
    return np.array(values, np.float32).tobytes()


def i32(*values: int) -> bytes:
    return np.array(values, np.int32).tobytes()


def i64(*values: int) -> bytes:
    return np.array(values, np.int64).tobytes()


def bf16(*values: float) -> bytes:
    """The upper half of each float32, as a server stores it."""
    return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()


def sequence(*tokens: int, **fields: object) -> pb.SampledSequence:
    return pb.SampledSequence(tokens=i32(*tokens), **fields)


def top_k(length: int, k: int, ids: bytes, logprobs: bytes) -> pb.TopkLogprobs:
    return pb.TopkLogprobs(length=length, k=k, token_ids=ids, logprobs=logprobs)


def tensor(dtype: int, data: bytes, *shape: int) -> pb.Tensor:
    return pb.Tensor(dtype=dtype, dense=data, shape=shape)


SPARSE = pb.Tensor(
    dtype=pb.DTYPE_FLOAT32,
    shape=[3, 4],
    sparse_csr=pb.SparseCsr(values=f32(-0.5, -1.5), crow_indices=i64(0, 1, 1, 2), col_indices=i64(2, 0)),
)
ALTERNATIVES = pb.PromptAltTokens(
    tokens=tensor(pb.DTYPE_INT64, i64(5, 6, 7, 2**31), 2, 2),
    logprobs=tensor(pb.DTYPE_FLOAT32, f32(-0.1, -0.2, -0.3, -0.4), 2, 2),
)
SAMPLES: dict[str, pb.SampleResponse] = {
    "nothing": pb.SampleResponse(),
    "one sequence, tokens only": pb.SampleResponse(sequences=[sequence(1, 2, 3)]),
    "two sequences, both reasons": pb.SampleResponse(
        sequences=[
            sequence(1, 2, logprobs=f32(-0.1, -0.2), stop_reason=pb.STOP_REASON_STOP),
            sequence(3, logprobs=f32(-0.3), stop_reason=pb.STOP_REASON_LENGTH),
        ],
        prompt_cache_hit_tokens=7,
    ),
    "a sequence without tokens": pb.SampleResponse(sequences=[sequence(logprobs=b"")]),
    "prompt logprobs, the first unknown": pb.SampleResponse(sequences=[sequence(1)], prompt_logprobs=f32(NAN, -0.5, -1.25)),
    "prompt logprobs of the last two": pb.SampleResponse(sequences=[sequence(1)], prompt_logprobs=f32(NAN, NAN, -1, -2)),
    "a logprob of minus infinity": pb.SampleResponse(sequences=[sequence(1, logprobs=f32(-INF))]),
    "top-k of the prompt, empty cells": pb.SampleResponse(
        sequences=[sequence(1)],
        topk_prompt_logprobs=top_k(
            3, 2, i32(0, 0, 5, 6, 7, 0), f32(-99999.0, -99999.0, -0.5, -0.75, -0.25, -99999.0)
        ),
    ),
    "top-k of each sequence": pb.SampleResponse(
        sequences=[
            sequence(1, 2, topk_sampled_logprobs=top_k(2, 3, i32(1, 2, 3, 4, 5, 6), f32(-1, -2, -3, -4, -5, -6))),
            sequence(3, topk_sampled_logprobs=top_k(1, 3, i32(3, 0, 0), f32(-0.5, -99999.0, -99999.0))),
        ]
    ),
    "top-k of length zero": pb.SampleResponse(sequences=[sequence(1)], topk_prompt_logprobs=top_k(0, 2, b"", b"")),
    "target logprobs, dense": pb.SampleResponse(
        sequences=[sequence(1)], target_prompt_logprobs=tensor(pb.DTYPE_FLOAT32, f32(-1, 0, -2, -3), 2, 2)
    ),
    "target logprobs, sparse": pb.SampleResponse(sequences=[sequence(1)], target_prompt_logprobs=SPARSE),
    "alternative tokens": pb.SampleResponse(sequences=[sequence(1)], prompt_alt_tokens=ALTERNATIVES),
    "alternative tokens as int32": pb.SampleResponse(
        sequences=[sequence(1)],
        prompt_alt_tokens=pb.PromptAltTokens(
            tokens=tensor(pb.DTYPE_INT32, i32(5, -1), 1, 2), logprobs=tensor(pb.DTYPE_FLOAT32, f32(-0.5, 0), 1, 2)
        ),
    ),
    "everything at once": pb.SampleResponse(
        sequences=[
            sequence(
                151643, 0, logprobs=f32(-0.5, 0), stop_reason=pb.STOP_REASON_LENGTH,
                topk_sampled_logprobs=top_k(2, 1, i32(9, 8), f32(-0.5, -1)),
            )
        ],
        prompt_logprobs=f32(NAN, -1, -2, -3),
        topk_prompt_logprobs=top_k(4, 1, i32(0, 1, 2, 3), f32(-99999.0, -1, -2, -3)),
        prompt_cache_hit_tokens=3,
        target_prompt_logprobs=SPARSE,
        prompt_alt_tokens=ALTERNATIVES,
    ),
    "a reason nobody knows": pb.SampleResponse(sequences=[sequence(1, stop_reason=9)]),
    "a tensor without dtype": pb.SampleResponse(target_prompt_logprobs=pb.Tensor(dense=f32(1), shape=[1, 1])),
}


def batch(dtype: int, rows: list[bytes], *trailing: int) -> pb.BatchedTensor:
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    return pb.BatchedTensor(data=b"".join(rows), offsets=i64(*offsets), dtype=dtype, trailing_shape=trailing)


def record(datums: int, **fields: pb.BatchedTensor) -> pb.ArrayRecord:
    return pb.ArrayRecord(type_tag="ArrayRecord", num_datums=datums, fields=fields)


def output(*records: pb.ArrayRecord, name: str = "ArrayRecord", **metrics: float) -> pb.ForwardBackwardOutput:
    named = {key.replace("__", ":"): value for key, value in metrics.items()}
    return pb.ForwardBackwardOutput(loss_fn_output_type=name, loss_fn_outputs=records, metrics=named)


RAGGED = batch(pb.DTYPE_FLOAT32, [f32(-0.5, -0.25), f32(), f32(-1)])
OUTPUTS: dict[str, pb.ForwardBackwardOutput] = {
    "nothing": pb.ForwardBackwardOutput(),
    "metrics only": output(loss__sum=1.5, clock_cycle__unique=12),
    "one record, ragged": output(record(3, logprobs=RAGGED), loss__sum=1.5),
    "a qualified name": output(record(3, logprobs=RAGGED), name="tinker.losses:TorchLossReturn"),
    "two fields": output(
        record(2, logprobs=batch(pb.DTYPE_FLOAT32, [f32(-1), f32(-2, -3)]), ids=batch(pb.DTYPE_INT64, [i64(1), i64(2, -3)]))
    ),
    "bfloat16": output(record(2, logprobs=batch(pb.DTYPE_BFLOAT16, [bf16(-0.5, 1.0, 3.140625), bf16(-1e-30, 2**100)]))),
    "bfloat16, not finite": output(record(1, logprobs=batch(pb.DTYPE_BFLOAT16, [bf16(INF, -INF, NAN, -0.0)]))),
    "int32": output(record(2, ids=batch(pb.DTYPE_INT32, [i32(1, -2), i32(2**31 - 1)]))),
    "int64 beyond 32 bits": output(record(1, ids=batch(pb.DTYPE_INT64, [i64(2**40, -(2**40))]))),
    "trailing shape": output(record(2, logprobs=batch(pb.DTYPE_FLOAT32, [f32(1, 2, 3, 4, 5, 6), f32(7, 8)], 2))),
    "trailing shape of two": output(record(1, logprobs=batch(pb.DTYPE_FLOAT32, [f32(*range(12))], 2, 3))),
    "trailing shape with a zero": output(record(1, logprobs=batch(pb.DTYPE_FLOAT32, [f32()], 0))),
    "several records": output(
        record(2, logprobs=batch(pb.DTYPE_FLOAT32, [f32(-1), f32(-2, -3)])),
        record(1, logprobs=batch(pb.DTYPE_FLOAT32, [f32(-4)])),
        loss__sum=10,
    ),
    "several records, own shapes and dtypes": output(
        record(1, logprobs=batch(pb.DTYPE_FLOAT32, [f32(1, 2, 3, 4)], 2)),
        record(2, logprobs=batch(pb.DTYPE_BFLOAT16, [bf16(5, 6, 7), bf16(8, 9, 10)], 3)),
    ),
    "fields stripped": output(record(3), loss__sum=1.5),
    "num_datums not given": output(record(0, logprobs=RAGGED)),
    "not finite": output(record(1, logprobs=batch(pb.DTYPE_FLOAT32, [f32(NAN, INF, -INF)])), loss__sum=NAN, other__max=INF),
    "a field without dtype": output(record(1, logprobs=batch(pb.DTYPE_UNSPECIFIED, [f32(1)]))),
    "a field shorter than num_datums": output(record(2, logprobs=batch(pb.DTYPE_FLOAT32, [f32(1)]))),
}

# One list a case: for each chunk the number of its outputs and its metrics.
Chunks = list[tuple[int, dict[str, float]]]
METRICS: dict[str, Chunks] = {
    "one chunk": [(2, {"loss:sum": 1.5, "loss:mean": 0.75, "cycle:unique": 3.0, "lag:slack": 2.0})],
    "sum": [(2, {"loss:sum": 1.5}), (1, {"loss:sum": 0.1}), (5, {"loss:sum": 0.2})],
    "mean, weighted by outputs": [(3, {"loss:mean": 1.0}), (1, {"loss:mean": 2.0})],
    "min and max": [(3, {"a:min": 1.0, "b:max": 1.0}), (1, {"a:min": -2.0, "b:max": -2.0})],
    "slack": [(3, {"lag:slack": 1.0}), (1, {"lag:slack": 5.0})],
    "unique": [(1, {"cycle:unique": 7.0}), (1, {"cycle:unique": 7.0}), (1, {"cycle:unique": 8.0})],
    "hash2": [(1, {"data:hash2": 12345.0}), (1, {"data:hash2": 2.0**63}), (1, {"data:hash2": 2.0**63 + 4096})],
    "hash2 of negative numbers": [(1, {"data:hash2": -1.0}), (1, {"data:hash2": 2.75})],
    "missing in the first chunk": [(1, {}), (1, {"loss:sum": 1.0})],
    "missing in a later chunk": [(1, {"loss:sum": 1.0, "a:max": 1.0}), (1, {"a:max": 2.0})],
    "a reduction nobody knows": [(1, {"a:median": 1.0, "loss:sum": 1.0}), (1, {"a:median": 2.0, "loss:sum": 1.0})],
    "hash_unordered, the older name": [(1, {"a:hash_unordered": 1.0}), (1, {"a:hash_unordered": 2.0})],
    "not a number": [(1, {"loss:sum": NAN, "a:max": 1.0, "b:mean": INF}), (1, {"loss:sum": 1.0, "a:max": NAN, "b:mean": 1.0})],
    "no outputs in one chunk": [(0, {"loss:mean": 4.0, "lag:slack": 4.0}), (2, {"loss:mean": 1.0, "lag:slack": 1.0})],
    "no outputs at all": [(0, {"loss:mean": 4.0}), (0, {"loss:mean": 1.0})],
    "no reduction in the name": [(1, {"loss": 1.0}), (1, {"loss": 2.0})],
    "two colons": [(1, {"a:b:sum": 1.0}), (1, {"a:b:sum": 2.0})],
    "no chunks": [],
}


def attempt(call: object, *arguments: object) -> dict[str, object]:
    try:
        return {"value": plain(call(*arguments))}
    except Exception as error:
        return {"error": plain(error)}


def decoded(cases: dict[str, Message], decode: object) -> list[object]:
    rows = []
    for case, message in cases.items():
        data = message.SerializeToString(deterministic=True)
        rows.append({"case": case, "protobuf": base64.b64encode(data).decode(), **attempt(decode, data)})
    return rows


def reduced(case: str, chunks: Chunks) -> dict[str, object]:
    results = [
        types.ForwardBackwardOutput(loss_fn_output_type="ArrayRecord", loss_fn_outputs=[{}] * count, metrics=metrics)
        for count, metrics in chunks
    ]
    told = [{"outputs": count, "metrics": plain(metrics)} for count, metrics in chunks]
    return {"case": case, "chunks": told, **attempt(lambda: combine_fwd_bwd_output_results(results).metrics)}


def main() -> None:
    np.seterr(all="ignore")
    for name, how, cases in (
        ("samples", "SampleResponse bytes and what response_conv makes of them", decoded(SAMPLES, response_conv.deserialize_sample_response)),
        ("outputs", "ForwardBackwardOutput bytes and what response_conv makes of them",
         decoded(OUTPUTS, response_conv.deserialize_forward_backward_output)),
        ("metrics", "metrics of chunks and what combine_fwd_bwd_output_results makes of them",
         [reduced(case, chunks) for case, chunks in METRICS.items()]),
    ):
        path = fixture.write("decode", name, {"recorded": fixture.header("record_decode.py", how), "cases": cases})
        print(f"{path.name:16} {len(cases)} cases, {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
