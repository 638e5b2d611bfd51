"""The public cookbook's own loops on the embedded service: supervised, RL in step and asynchronous, DPO, distillation.

    npx tinker-rx local                                           # in another terminal; export the two lines it prints
    pip install tinker-cookbook pyrage                            # torch comes with it: about 6 GB
    python test/parity/cookbook_loops.py [loop …]

By hand, not in CI. cookbook.md beside this file has what it printed. Every claim is an assert; the last line is "ok".
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Sequence
from pathlib import Path

import chz
import pyrage
import tinker
from tinker_cookbook import model_info, renderers
from tinker_cookbook.distillation import train_on_policy
from tinker_cookbook.distillation.datasets import DistillationDatasetConfig, PromptOnlyDataset, TeacherConfig
from tinker_cookbook.preference import train_dpo
from tinker_cookbook.rl import train as rl_train
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StepResult
from tinker_cookbook.supervised import train as supervised_train
from tinker_cookbook.supervised.common import datum_from_model_input_weights
from tinker_cookbook.supervised.data import FromConversationFileBuilder
from tinker_cookbook.supervised.types import ChatDatasetBuilder, ChatDatasetBuilderCommonConfig, SupervisedDataset
from tinker_cookbook.tokenizer_utils import get_tokenizer, register_tokenizer
from transformers import AutoTokenizer

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

MODEL, TEACHER, RENDERER = "tinker-rx/tiny", "tinker-rx/small", "role_colon"
FACTS = [
    ("What color is the sky?", "blue"), ("What color is grass?", "green"), ("What color is snow?", "white"),
    ("What color is coal?", "black"), ("What color is blood?", "red"), ("What color is the sun?", "yellow"),
    ("What color is the sea?", "blue"), ("What color is a leaf?", "green"),
]  # fmt: skip
WORK = Path(tempfile.mkdtemp(prefix="tinker-rx-cookbook-"))
STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - STARTED:6.1f} s  {text}", flush=True)


def metrics(log: Path, key: str) -> list[float]:
    rows = [json.loads(line) for line in (log / "metrics.jsonl").read_text().splitlines()]
    return [row[key] for row in rows if key in row]


def shown(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def conversation(question: str, answer: str) -> list[dict]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def common(batch_size: int) -> ChatDatasetBuilderCommonConfig:
    return ChatDatasetBuilderCommonConfig(
        model_name_for_tokenizer=MODEL, renderer_name=RENDERER, max_length=None, batch_size=batch_size
    )


def tokenizer() -> None:
    """get_tokenizer() of a training client as it is; the one line for everything that goes by the model's name."""
    service = tinker.ServiceClient()
    training = service.create_lora_training_client(base_model=MODEL, rank=1)
    loaded = training.get_tokenizer()
    text = "Grüße, 世界 🌊\tand  spaces\n"
    assert loaded.encode(text, add_special_tokens=False) == list(text.encode())
    assert loaded.decode(list(text.encode())) == text
    assert loaded.eos_token_id == 256 and loaded.bos_token_id == 261
    folder = training.get_info().model_data.tokenizer_id
    for model in (MODEL, TEACHER):
        register_tokenizer(model, lambda: AutoTokenizer.from_pretrained(folder))
    assert get_tokenizer(MODEL).encode("a b") == [97, 32, 98]
    say("tokenizer: get_tokenizer() gives the bytes of UTF-8, and 256 at the end")
    sampler = service.create_sampling_client(base_model=MODEL)
    params = tinker.SamplingParams(max_tokens=60, temperature=0, stop="\n")
    sampler.sample(tinker.ModelInput.from_ints(list(b"User: hi\n")), num_samples=1, sampling_params=params).result()
    say("sampling: a bare text as stop is taken")
    identity = pyrage.x25519.Identity.generate()
    saved = training.save_weights_external("sealed", age_encryption_recipients=[str(identity.to_public())]).result()
    plain = training.save_weights_external("open").result()
    rest = service.create_rest_client()
    fetch = lambda path: {  # noqa: E731
        name: urllib.request.urlopen(url).read() for name, url in rest.get_external_weights_urls(path).result().urls.items()
    }
    sealed, opened = fetch(saved.path), fetch(plain.path)
    assert {name: pyrage.decrypt(content, [identity]) for name, content in sealed.items()} == {
        f"{name}.age": content for name, content in opened.items()
    }
    say(f"age: pyrage opens {', '.join(sorted(sealed))}")


def supervised() -> None:
    file, log = WORK / "facts.jsonl", WORK / "supervised"
    file.write_text("".join(json.dumps({"messages": conversation(*fact)}) + "\n" for fact in FACTS))
    config = supervised_train.Config(
        log_path=str(log), model_name=MODEL, recipe_name="parity", renderer_name=RENDERER,
        dataset_builder=FromConversationFileBuilder(file_path=str(file), common_config=common(8)),
        learning_rate=3e-3, lr_schedule="constant", num_epochs=25, lora_rank=16, save_every=10, eval_every=0,
    )  # fmt: skip
    asyncio.run(supervised_train.main(config))
    losses = metrics(log, "train_mean_nll")
    say(f"supervised: {len(losses)} steps, NLL {shown(losses[:3])} … {shown(losses[-2:])}")
    assert losses[-1] < 0.3 * losses[0]
    saved = [json.loads(line) for line in (log / "checkpoints.jsonl").read_text().splitlines()]
    say(f"supervised: checkpoints {', '.join(each['name'] for each in saved)}")
    assert saved[-1]["name"] == "final"


class Vowel(Env):
    """One token; a reward where it is the letter e."""

    stop = ["\n"]

    def __init__(self, prompt: list[int]):
        self.prompt = prompt

    async def initial_observation(self):
        return tinker.ModelInput.from_ints(self.prompt), self.stop

    async def step(self, action, *, extra=None):
        reward = 1.0 if len(action) > 0 and action[0] == ord("e") else 0.0
        nothing = tinker.ModelInput.empty()
        return StepResult(reward=reward, episode_done=True, next_observation=nothing, next_stop_condition=self.stop)


class VowelGroup(EnvGroupBuilder):
    def __init__(self, prompt: list[int]):
        self.prompt = prompt

    async def make_envs(self) -> Sequence[Env]:
        return [Vowel(self.prompt) for _ in range(16)]


class Vowels(RLDataset):
    words = ["th", "m", "b", "h", "sh", "w"]

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        return [VowelGroup(list(f"the {word}".encode())) for word in self.words]

    def __len__(self) -> int:
        return 10


@chz.chz
class VowelsBuilder(RLDatasetBuilder):
    async def __call__(self):
        return Vowels(), None


def reinforcement(name: str, **more) -> None:
    log = WORK / name
    config = rl_train.Config(
        learning_rate=3e-3, dataset_builder=VowelsBuilder(), model_name=MODEL, recipe_name="parity", max_tokens=1,
        lora_rank=8, log_path=str(log), eval_every=0, save_every=5, num_groups_to_log=0, rollout_json_export=False,
        **more,
    )  # fmt: skip
    asyncio.run(rl_train.main(config))
    rewards = metrics(log, "env/all/reward/total")
    say(f"{name}: {len(rewards)} steps, reward {shown(rewards)}")
    assert max(rewards[-3:]) > rewards[0] + 0.2


class Pairs(SupervisedDataset):
    """Chosen and rejected in turn, as the loop takes them."""

    def __init__(self):
        renderer = renderers.get_renderer(RENDERER, get_tokenizer(MODEL))
        said = lambda answer: lambda question: datum_from_model_input_weights(  # noqa: E731
            *renderer.build_supervised_example(conversation(question, answer)), None
        )
        chosen, rejected = said("It is so, and that is well."), said("No.")
        self.data = [datum for question, _ in FACTS for datum in (chosen(question), rejected(question))]

    def get_batch(self, index: int) -> list[tinker.Datum]:
        return self.data

    def set_epoch(self, seed: int = 0) -> None:
        pass

    def __len__(self) -> int:
        return 10


@chz.chz
class PairsBuilder(ChatDatasetBuilder):
    def __call__(self):
        return Pairs(), None


def dpo() -> None:
    log = WORK / "dpo"
    config = train_dpo.Config(
        log_path=str(log), model_name=MODEL, recipe_name="parity", dataset_builder=PairsBuilder(common_config=common(16)),
        renderer_name=RENDERER, learning_rate=1e-3, lr_schedule="constant", dpo_beta=0.1, lora_rank=8,
        save_every=0, eval_every=0, infrequent_eval_every=0,
    )  # fmt: skip
    train_dpo.main(config)
    losses, accuracy = metrics(log, "dpo_loss"), metrics(log, "accuracy")
    say(f"dpo: {len(losses)} steps, loss {shown(losses)}; accuracy {shown(accuracy[-1:])}")
    assert abs(losses[0] - 0.6931) < 1e-3 and losses[-1] < 0.5 * losses[0]


@chz.chz
class QuestionsBuilder(RLDatasetBuilder):
    async def __call__(self):
        tokens = get_tokenizer(MODEL)
        renderer = renderers.get_renderer(RENDERER, tokens)
        questions = [question for question, _ in FACTS] * 5
        return PromptOnlyDataset(questions, 4, 4, renderer, tokens), None


def distillation() -> None:
    log = WORK / "distillation"
    dataset = DistillationDatasetConfig(
        dataset_builder=QuestionsBuilder(), teacher_config=TeacherConfig(base_model=TEACHER), groups_per_batch=4
    )
    config = train_on_policy.Config(
        learning_rate=2e-3, dataset_configs=[dataset], model_name=MODEL, recipe_name="parity", renderer_name=RENDERER,
        max_tokens=24, lora_rank=16, log_path=str(log), eval_every=0, save_every=0, max_steps=10,
    )  # fmt: skip
    asyncio.run(train_on_policy.main(config))
    divergence = metrics(log, "teacher_kl")
    say(f"distillation: {len(divergence)} steps, KL to the teacher {shown(divergence)}")
    assert sum(divergence[-3:]) < sum(divergence[:3])


LOOPS = {
    "supervised": supervised,
    "rl": lambda: reinforcement("rl"),
    "rl-async": lambda: reinforcement(
        "rl-async", async_config=rl_train.AsyncConfig(max_steps_off_policy=2, groups_per_batch=6)
    ),
    "dpo": dpo,
    "distillation": distillation,
}


def main() -> None:
    model_info.warn_if_renderer_not_recommended = lambda *_: None
    tokenizer()
    for name in sys.argv[1:] or LOOPS:
        LOOPS[name]()
    print("ok")


main()
