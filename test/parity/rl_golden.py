"""Records advantages, KL terms, discounted sums, masks and metrics of the public tinker-cookbook, for test/parity/rl.test.ts.

Needs (by hand, not in CI: torch is large):
    pip install torch tinker transformers termcolor numpy pillow chz blobfile datasets
    pip install --no-deps tinker-cookbook==0.5.8
Run:
    python test/parity/rl_golden.py
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import tinker
import torch
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.metrics import (
    compute_kl_sample_train,
    discounted_future_sum_vectorized,
    incorporate_kl_penalty,
)
from tinker_cookbook.rl.types import PARSE_ERROR_MASKED_METRIC_KEY, Trajectory, TrajectoryGroup, Transition

OUT = Path(__file__).resolve().parent / "recorded" / "rl.json"
rng = random.Random(14)


def logprob() -> float:
    # Exact in float32, so that only the arithmetic is compared.
    return -rng.randrange(1, 4096) / 1024


def episode(turns: int, masked: int | None = None):
    seen = [rng.randrange(256) for _ in range(rng.randrange(2, 6))]
    out = []
    for turn in range(turns):
        tokens = [rng.randrange(256) for _ in range(rng.randrange(1, 5))]
        out.append({"prompt": list(seen), "tokens": tokens, "logprobs": [logprob() for _ in tokens], "masked": turn == masked})
        seen = seen + tokens + [rng.randrange(256) for _ in range(rng.randrange(1, 3))]
    return out


def trajectory(turns):
    transitions = [
        Transition(
            ob=tinker.ModelInput.from_ints(turn["prompt"]),
            ac=TokensWithLogprobs(tokens=turn["tokens"], maybe_logprobs=turn["logprobs"]),
            reward=0.0,
            episode_done=index == len(turns) - 1,
            metrics={PARSE_ERROR_MASKED_METRIC_KEY: 1.0} if turn["masked"] else {},
        )
        for index, turn in enumerate(turns)
    ]
    return Trajectory(transitions=transitions, final_ob=tinker.ModelInput.empty())


GROUPS = [
    {"rewards": [1.0, 0.0, 0.25], "tags": ["a"], "episodes": [episode(1), episode(2), episode(3, masked=1)]},
    {"rewards": [0.5, 0.5], "tags": ["b"], "episodes": [episode(1), episode(1)]},
    {"rewards": [-1.0, 2.0], "tags": ["a"], "episodes": [episode(2), episode(1)]},
]


class Base:
    """A reference model whose log probabilities are given."""

    def __init__(self):
        self.given = []

    async def compute_logprobs_async(self, sequence):
        values = [logprob() for _ in range(sequence.length)]
        self.given.append(values)
        return values


def plain(tensor):
    return tensor.to_torch().tolist() if hasattr(tensor, "to_torch") else tensor.tolist()


def groups():
    return [
        TrajectoryGroup(
            trajectories_G=[trajectory(turns) for turns in group["episodes"]],
            final_rewards_G=group["rewards"],
            metrics_G=[{} for _ in group["rewards"]],
        )
        for group in GROUPS
    ]


def data():
    made = groups()
    datums, _ = assemble_training_data(made, compute_advantages(made))
    return datums


def penalty(coefficient: float, discount: float):
    datums = data()
    base = Base()
    metrics = asyncio.run(incorporate_kl_penalty(datums, base, coefficient, discount))
    return {
        "coefficient": coefficient,
        "discount": discount,
        "reference": base.given,
        "advantages": [plain(datum.loss_fn_inputs["advantages"]) for datum in datums],
        "kl_policy_base": metrics["kl_policy_base"],
    }


def main():
    datums = data()
    trained = [[logprob() for _ in plain(datum.loss_fn_inputs["mask"])] for datum in datums]
    metrics = compute_trajectory_metrics(groups(), [group["tags"] for group in GROUPS])
    recorded = {
        "cookbook": "0.5.8",
        "groups": GROUPS,
        "advantages": [plain(values) for values in compute_advantages(groups())],
        "masks": [plain(datum.loss_fn_inputs["mask"]) for datum in datums],
        "token_advantages": [plain(datum.loss_fn_inputs["advantages"]) for datum in datums],
        "trained": trained,
        "kl_sample_train": compute_kl_sample_train(datums, [torch.tensor(values) for values in trained]),
        "penalties": [penalty(0.5, 0.0), penalty(2.0, 0.5)],
        "discounted": plain(discounted_future_sum_vectorized(torch.tensor([1.0, 2.0, 3.0]), 0.5)),
        # parse_error_masked is left out: the cookbook takes its mean over those that have it.
        "metrics": {key: value for key, value in metrics.items() if "parse_error" not in key},
    }
    OUT.write_text(json.dumps(recorded, indent=1) + "\n")
    print(f"{OUT}: {len(datums)} datums")


main()
