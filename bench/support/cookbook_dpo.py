"""The public cookbook's own DPO loop on data that is given, for bench/losses.mjs: python cookbook_dpo.py <job.json>

The job has base_url, model, log, learning_rate, beta and batches of datums ({tokens, weights}, chosen and rejected in turn).
Prints {"steps", "seconds", "losses"}: the time from the start of the second step to the end of the last one.
Needs tinker-cookbook and torch in the Python that runs it; TINKER_API_KEY is the service's key.
"""

from __future__ import annotations

import json
import logging
import sys
import time

import chz
import tinker
from tinker_cookbook import model_info
from tinker_cookbook.preference import train_dpo
from tinker_cookbook.supervised.types import ChatDatasetBuilder, ChatDatasetBuilderCommonConfig, SupervisedDataset
from tinker_cookbook.tokenizer_utils import register_tokenizer

with open(sys.argv[1]) as file:
    JOB = json.load(file)


class Bytes:
    def decode(self, tokens, **_):
        return bytes(token % 256 for token in tokens).decode("utf-8", "replace")


def datum(given: dict) -> tinker.Datum:
    tokens, weights = given["tokens"], given["weights"]
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": tinker.TensorData(data=tokens[1:], dtype="int64", shape=[len(tokens) - 1]),
            "weights": tinker.TensorData(data=weights[1:], dtype="float32", shape=[len(tokens) - 1]),
        },
    )


class Given(SupervisedDataset):
    def get_batch(self, index: int):
        return [datum(each) for each in JOB["batches"][index]]

    def set_epoch(self, seed: int = 0):
        pass

    def __len__(self) -> int:
        return len(JOB["batches"])


@chz.chz
class GivenBuilder(ChatDatasetBuilder):
    def __call__(self):
        return Given(), None


def main() -> None:
    register_tokenizer(JOB["model"], lambda: Bytes())
    model_info.warn_if_renderer_not_recommended = lambda *_: None
    started: list[float] = []
    update = train_dpo.do_update

    def timed(**given):
        started.append(time.perf_counter())
        return update(**given)

    train_dpo.do_update = timed
    common = ChatDatasetBuilderCommonConfig(
        model_name_for_tokenizer=JOB["model"], renderer_name="role_colon", max_length=None, batch_size=1
    )
    config = train_dpo.Config(
        log_path=JOB["log"],
        model_name=JOB["model"],
        recipe_name="bench",
        dataset_builder=GivenBuilder(common_config=common),
        renderer_name=None,
        learning_rate=JOB["learning_rate"],
        lr_schedule="constant",
        dpo_beta=JOB["beta"],
        lora_rank=4,
        base_url=JOB["base_url"],
        save_every=0,
        eval_every=0,
        infrequent_eval_every=0,
    )
    logging.disable(logging.CRITICAL)
    train_dpo.main(config)
    with open(f"{JOB['log']}/metrics.jsonl") as file:
        rows = [json.loads(line) for line in file]
    losses = [row["dpo_loss"] for row in rows if "dpo_loss" in row]
    # The last step ends before the final checkpoint is saved: its own time is in its metrics.
    last = next(row for row in reversed(rows) if "dpo_loss" in row)
    seconds = started[-1] - started[1] + last["time/total"]
    print(json.dumps({"steps": len(started) - 1, "seconds": seconds, "losses": losses}))


main()
