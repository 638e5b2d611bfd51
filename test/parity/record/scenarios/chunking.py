"""How one call is cut into several requests, and in which order they arrive."""

from __future__ import annotations

import tinker
from tinker import types

from ..recording import Recording, scenario

# The same cuts as with the real limits, but bodies that fit into a fixture.
SMALL = {"fwdbwd_max_chunk_len": 3, "fwdbwd_max_chunk_bytes_count": 200}
SERIAL = {"parallel_fwdbwd_chunks": False}


def _datum(index: int, length: int) -> types.Datum:
    tokens = [(index + position) % 1000 for position in range(length)]
    return types.Datum(
        model_input=tinker.ModelInput.from_ints(tokens),
        loss_fn_inputs={"target_tokens": tokens, "weights": [1.0] * length},
    )


def datums(*lengths: int) -> list[types.Datum]:
    """Datum n has tokens n, n + 1, … modulo 1000, the same as targets, and weights of one: 16 bytes a token."""
    return [_datum(index, length) for index, length in enumerate(lengths)]


def _cuts(recording: Recording) -> None:
    trainer = recording.trainer()
    # Eight small ones: cut by count. Then by bytes, with one that alone is over the limit in each place.
    for lengths in ([1] * 8, [5, 5, 5, 5], [20, 1, 1], [1, 20, 1], [1, 1, 20], [12, 1, 6, 6, 1], [13]):
        call = f"forward_backward {lengths}"
        recording.result(call, trainer.forward_backward(datums(*lengths), "cross_entropy"))
    recording.result("forward [1, 1, 1, 1]", trainer.forward(datums(1, 1, 1, 1), "cross_entropy"))
    recording.result("optim_step", trainer.optim_step(types.AdamParams()))


@scenario("chunking-serial", "small limits, chunks sent in order: seven batches, a forward, an optim_step", config={**SMALL, **SERIAL})
def serial(recording: Recording) -> None:
    _cuts(recording)


@scenario("chunking-parallel", "small limits: eight datums in three chunks, the first one last; then an optim_step",
          config=SMALL, racing=("forward_backward",))
def parallel(recording: Recording) -> None:
    trainer = recording.trainer()
    both = [trainer.forward_backward(datums(*[1] * 8), "cross_entropy"), trainer.optim_step(types.AdamParams())]
    for call, future in zip(("forward_backward", "optim_step"), both, strict=True):
        recording.result(call, future)


@scenario("chunking-default-count", "the real limits: 2,100 datums of one token in three chunks", racing=("forward_backward",))
def default_count(recording: Recording) -> None:
    trainer = recording.trainer()
    output = trainer.forward_backward(datums(*[1] * 2100), "cross_entropy").result()
    recording.result("forward_backward", {"metrics": output.metrics, "outputs": len(output.loss_fn_outputs)})


@scenario("chunking-default-bytes", "the real limits: 90 datums of 8,000 tokens, 11.5 MB, in three chunks", racing=("forward_backward",))
def default_bytes(recording: Recording) -> None:
    trainer = recording.trainer()
    output = trainer.forward_backward(datums(*[8000] * 90), "cross_entropy").result()
    recording.result("forward_backward", {"metrics": output.metrics, "outputs": len(output.loss_fn_outputs)})
