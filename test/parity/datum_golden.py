"""Records datums, losses and learning rates of the public tinker-cookbook, for test/parity/datums.test.ts.

Needs (by hand, not in CI: torch is large):
    pip install torch tinker transformers termcolor numpy pillow chz blobfile datasets
    pip download --no-deps tinker-cookbook==0.5.8 && unzip tinker_cookbook-*.whl -d COOKBOOK
Run:
    PYTHONPATH=COOKBOOK python test/parity/datum_golden.py

Chunks are written as lists of tokens, or as a number: an image of so many tokens.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import tinker
import torch
from tinker_cookbook import hyperparam_utils
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.types import Trajectory, Transition
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.supervised.common import compute_bpb, compute_mean_nll, datum_from_model_input_weights

OUT = Path(__file__).resolve().parent / "recorded" / "datums.json"
rng = random.Random(6)


def chunk(part):
    if isinstance(part, list):
        return tinker.EncodedTextChunk(tokens=part)
    return tinker.types.ImageChunk(data=b"x", format="png", expected_tokens=part)


def plain(chunks):
    return [list(c.tokens) if isinstance(c, tinker.EncodedTextChunk) else c.length for c in chunks]


def tensor(data):
    return tinker.TensorData(data=list(data), dtype="int64" if all(isinstance(x, int) for x in data) else "float32", shape=[len(data)])


def supervised():
    cases = []
    while len(cases) < 120:
        parts = []
        for _ in range(rng.randint(1, 4)):
            parts.append(rng.randint(1, 5) if parts and rng.random() < 0.3 else [rng.randint(1, 99) for _ in range(rng.randint(0, 6))])
        length = sum(p if isinstance(p, int) else len(p) for p in parts)
        weights = [rng.choice([0.0, 0.0, 1.0, 0.5]) for _ in range(length)]
        max_length = rng.choice([None, None, rng.randint(2, max(2, length + 1))])
        reduction = rng.choice(["none", "mean"])
        try:
            datum = datum_from_model_input_weights(
                tinker.ModelInput(chunks=[chunk(p) for p in parts]), torch.tensor(weights), max_length, reduction
            )
        except Exception:
            continue
        cases.append(
            {
                "chunks": parts,
                "weights": weights,
                "max_length": max_length,
                "reduction": reduction,
                "input": plain(datum.model_input.chunks),
                "targets": datum.loss_fn_inputs["target_tokens"].tolist(),
                "reduced": datum.loss_fn_inputs["weights"].tolist(),
            }
        )
    return cases


def turns():
    cases = []
    for _ in range(40):
        sequence, transitions, recorded = [], [], []
        for _ in range(rng.randint(1, 4)):
            if sequence and rng.random() < 0.3:
                sequence = []
            sequence = sequence + [rng.randint(1, 9) for _ in range(rng.randint(1, 4))]
            sampled = [rng.randint(10, 19) for _ in range(rng.randint(1, 4))]
            logprobs = [round(-rng.random(), 3) for _ in sampled]
            recorded.append({"prompt": list(sequence), "tokens": sampled, "logprobs": logprobs})
            transitions.append(
                Transition(
                    ob=tinker.ModelInput.from_ints(list(sequence)),
                    ac=TokensWithLogprobs(tokens=sampled, maybe_logprobs=logprobs),
                    reward=0.0,
                    episode_done=False,
                )
            )
            sequence = sequence + sampled
        advantage = round(rng.uniform(-1, 1), 3)
        data = trajectory_to_data(Trajectory(transitions=transitions, final_ob=tinker.ModelInput.empty()), advantage)
        cases.append(
            {
                "turns": recorded,
                "advantage": advantage,
                "data": [
                    {
                        "input": datum.model_input.to_ints(),
                        **{name: datum.loss_fn_inputs[name].tolist() for name in ("target_tokens", "logprobs", "advantages", "mask")},
                    }
                    for datum in data
                ],
            }
        )
    return cases


class ByteTokenizer:
    """Ids 0 to 255 are bytes, 256 is special."""

    all_special_ids = [256]

    def decode(self, ids, skip_special_tokens=False):
        return bytes(i for i in ids if i < 256).decode("utf-8", errors="replace")


def metrics():
    cases = []
    for _ in range(30):
        data = []
        for _ in range(rng.randint(1, 3)):
            text = list("".join(rng.choice(["a", "bc", "é", "汉", " "]) for _ in range(rng.randint(1, 6))).encode()) + [256]
            data.append(
                {
                    "targets": text,
                    "weights": [rng.choice([0.0, 1.0, 0.25]) for _ in text],
                    "logprobs": [round(-3 * rng.random(), 3) for _ in text],
                }
            )
        columns = {key: [tensor(datum[key]) for datum in data] for key in ("targets", "weights", "logprobs")}
        nll = compute_mean_nll(columns["logprobs"], columns["weights"])
        bpb = compute_bpb(columns["logprobs"], columns["weights"], columns["targets"], ByteTokenizer())
        cases.append({"data": data, "nll": None if nll != nll else nll, "bpb": None if bpb != bpb else bpb})
    return cases


def models():
    result = {}
    for model in hyperparam_utils._LORA_PARAMS_PER_RANK_BY_COMPONENT:
        try:
            rate = hyperparam_utils.get_lr(model)
        except NotImplementedError:
            rate = None
        except Exception:
            rate = None
        result[model] = {
            "lr": rate,
            "hidden": hyperparam_utils._get_hidden_size(model),
            "parameters": hyperparam_utils.get_lora_param_count(model),
            "attention": hyperparam_utils.get_lora_param_count(model, 8, train_mlp=False, train_unembed=False),
        }
    return result


OUT.write_text(
    json.dumps({"supervised": supervised(), "turns": turns(), "metrics": metrics(), "models": models()}, separators=(",", ":")) + "\n"
)
print(OUT.stat().st_size, "bytes")
