"""forward_backward of the Python SDK on data that is given, for bench/forwardBackward.mjs: python <this file> <job as JSON>

The job has base_url, datums, tokens and repeats. Prints {"arrays": [seconds], "lists": [seconds]}. The first call warms up.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time

import numpy
import tinker

JOB = json.loads(sys.argv[1])


def datum(tokens, weights) -> tinker.Datum:
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(tokens),
        loss_fn_inputs={"target_tokens": tokens, "weights": weights},
    )


def seconds(trainer, make) -> float:
    start = time.perf_counter()
    trainer.forward_backward([make() for _ in range(JOB["datums"])], "cross_entropy").result()
    return time.perf_counter() - start


def main() -> None:
    logging.disable(logging.CRITICAL)
    service = tinker.ServiceClient(base_url=JOB["base_url"], api_key="tml-bench")
    trainer = service.create_lora_training_client(base_model="bench", rank=8)
    size = JOB["tokens"]
    tokens = [(at * 7919) % 150_000 for at in range(size)]
    weights = [1.0] * size
    arrays = numpy.array(tokens, dtype=numpy.int64), numpy.array(weights, dtype=numpy.float32)

    def from_arrays() -> tinker.Datum:
        return tinker.Datum(
            model_input=tinker.ModelInput.from_ints(tokens),
            loss_fn_inputs={
                "target_tokens": tinker.TensorData.from_numpy(arrays[0]),
                "weights": tinker.TensorData.from_numpy(arrays[1]),
            },
        )

    measured = {"arrays": [], "lists": []}
    for repeat in range(JOB["repeats"] + 1):
        for name, make in (("arrays", from_arrays), ("lists", lambda: datum(tokens, weights))):
            took = seconds(trainer, make)
            if repeat > 0:
                measured[name].append(took)
    print(json.dumps(measured))


main()
sys.stdout.flush()
# The SDK's threads would keep the process for a while.
os._exit(0)
