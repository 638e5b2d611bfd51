"""Samples of the Python SDK, all asked for at once, for bench/samples.mjs: python <this file> <job as JSON>

The job has origin, samples and promptTokens. Prints {"samplesPerSecond", "cpuSecondsPerSample"}. A tenth as many warm up.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import time

import tinker

JOB = json.loads(sys.argv[1])
SAMPLED_TOKENS = 64


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    logging.disable(logging.CRITICAL)
    service = tinker.ServiceClient(base_url=JOB["origin"], api_key="tml-bench")
    sampler = service.create_sampling_client(base_model="bench")
    tokens = [1000 + (at * 7919) % 90_000 for at in range(JOB["promptTokens"])]
    params = tinker.SamplingParams(max_tokens=SAMPLED_TOKENS)

    def sample_all(count: int) -> None:
        futures = [
            sampler.sample(prompt=tinker.ModelInput.from_ints(tokens), num_samples=1, sampling_params=params)
            for _ in range(count)
        ]
        for future in futures:
            assert len(future.result().sequences[0].tokens) == SAMPLED_TOKENS

    sample_all(JOB["samples"] // 10)
    start, used = time.perf_counter(), cpu_seconds()
    sample_all(JOB["samples"])
    seconds = time.perf_counter() - start
    cpu = (cpu_seconds() - used) / JOB["samples"]
    print(json.dumps({"samplesPerSecond": JOB["samples"] / seconds, "cpuSecondsPerSample": cpu}))


main()
sys.stdout.flush()
# The SDK's threads would keep the process for a while.
os._exit(0)
