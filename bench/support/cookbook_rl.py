"""The public cookbook's own synchronous RL loop on tasks that are given, for bench/rl.mjs: python cookbook_rl.py <job.json>

The job has model, log, learning_rate, rank, max_tokens, group, prompts (a list of batches of token lists), stop and letter. Prints
{"seconds", "rewards"}: the seconds of each step but the first, and the mean reward of each. Needs tinker-cookbook and torch in the Python that runs it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import chz
import tinker
from tinker_cookbook.rl import train
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StepResult
from tinker_cookbook.tokenizer_utils import register_tokenizer

with open(sys.argv[1]) as file:
    JOB = json.load(file)


class Bytes:
    def decode(self, tokens, **_):
        return bytes(token % 256 for token in tokens).decode("utf-8", "replace")


class Letter(Env):
    def __init__(self, prompt: list[int]):
        self.prompt = prompt

    async def initial_observation(self):
        return tinker.ModelInput.from_ints(self.prompt), JOB["stop"]

    async def step(self, action, *, extra=None):
        reward = 1.0 if len(action) > 0 and action[0] == JOB["letter"] else 0.0
        nothing = tinker.ModelInput.empty()
        return StepResult(reward=reward, episode_done=True, next_observation=nothing, next_stop_condition=JOB["stop"])


class Group(EnvGroupBuilder):
    def __init__(self, prompt: list[int]):
        self.prompt = prompt

    async def make_envs(self) -> Sequence[Env]:
        return [Letter(self.prompt) for _ in range(JOB["group"])]


class Given(RLDataset):
    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        return [Group(prompt) for prompt in JOB["prompts"][index]]

    def __len__(self) -> int:
        return len(JOB["prompts"])


@chz.chz
class GivenBuilder(RLDatasetBuilder):
    async def __call__(self):
        return Given(), None


def main() -> None:
    register_tokenizer(JOB["model"], lambda: Bytes())
    logging.disable(logging.WARNING)
    config = train.Config(
        learning_rate=JOB["learning_rate"],
        dataset_builder=GivenBuilder(),
        model_name=JOB["model"],
        recipe_name="bench",
        max_tokens=JOB["max_tokens"],
        lora_rank=JOB["rank"],
        log_path=JOB["log"],
        eval_every=0,
        save_every=0,
        num_groups_to_log=0,
        rollout_json_export=False,
    )
    asyncio.run(train.main(config))
    rows = [json.loads(line) for line in (Path(JOB["log"]) / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if "env/all/reward/total" in row]
    print(json.dumps({"seconds": [row["time/total"] for row in steps[1:]], "rewards": [row["env/all/reward/total"] for row in steps]}))


main()
