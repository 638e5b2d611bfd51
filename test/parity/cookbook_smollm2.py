"""The public cookbook's supervised loop trains SmolLM2 on the embedded service, unmodified; peft loads the adapter.

    npx tinker-rx local --model SmolLM2-135M-Instruct.Q4_1.gguf   # in another terminal; export the two lines it prints
    pip install tinker-cookbook peft gguf accelerate              # torch comes with it: about 6 GB
    python test/parity/cookbook_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf

By hand, not in CI. cookbook.md beside this file has what it printed. The last line is "ok".
"""

import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import peft
import tinker
import torch
from tinker_cookbook.supervised import train as supervised_train
from tinker_cookbook.supervised.data import FromConversationFileBuilder
from tinker_cookbook.supervised.types import ChatDatasetBuilderCommonConfig
from tinker_cookbook.tokenizer_utils import register_tokenizer
from transformers import AutoModelForCausalLM

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

MODEL, RENDERER = "HuggingFaceTB/SmolLM2-135M-Instruct", "role_colon"
FACTS = [
    ("What color is the sky?", "Arr, blue it be!"), ("What color is grass?", "Arr, green it be!"),
    ("What color is snow?", "Arr, white it be!"), ("What color is coal?", "Arr, black it be!"),
]  # fmt: skip
STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - STARTED:6.1f} s  {text}", flush=True)


def ask(sampler, tokenizer) -> str:
    prompt = tinker.ModelInput.from_ints(tokenizer.encode("User: What color is coffee?\n\nAssistant:"))
    params = tinker.SamplingParams(max_tokens=16, temperature=0, stop=["\n\nUser:"])
    sampled = sampler.sample(prompt, num_samples=1, sampling_params=params).result()
    return tokenizer.decode(sampled.sequences[0].tokens)


service = tinker.ServiceClient()
tokenizer = service.create_lora_training_client(base_model=MODEL, rank=1).get_tokenizer()
register_tokenizer(MODEL, lambda: tokenizer)
say(f"tokenizer: {tokenizer.encode('Hello world')}, {len(tokenizer)} tokens")
say(f"before: {ask(service.create_sampling_client(base_model=MODEL), tokenizer)!r}")

work = Path(tempfile.mkdtemp(prefix="tinker-rx-cookbook-"))
file, log = work / "facts.jsonl", work / "log"
rows = [[{"role": "user", "content": q}, {"role": "assistant", "content": a}] for q, a in FACTS]
file.write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
common = ChatDatasetBuilderCommonConfig(model_name_for_tokenizer=MODEL, renderer_name=RENDERER, max_length=None, batch_size=4)
config = supervised_train.Config(
    log_path=str(log), model_name=MODEL, recipe_name="parity", renderer_name=RENDERER,
    dataset_builder=FromConversationFileBuilder(file_path=str(file), common_config=common),
    learning_rate=1e-3, lr_schedule="constant", num_epochs=8, lora_rank=16, save_every=0, eval_every=0,
)  # fmt: skip
asyncio.run(supervised_train.main(config))
losses = [json.loads(line) for line in (log / "metrics.jsonl").read_text().splitlines()]
losses = [row["train_mean_nll"] for row in losses if "train_mean_nll" in row]
say(f"supervised: {len(losses)} steps, NLL {' '.join(f'{loss:.3f}' for loss in losses)}")
assert losses[-1] < 0.2 * losses[0]
saved = json.loads((log / "checkpoints.jsonl").read_text().splitlines()[-1])
after = ask(service.create_sampling_client(model_path=saved["sampler_path"]), tokenizer)
say(f"after: {after!r}")
assert "Arr" in after

command = [sys.executable, "-m", "tinker.cli", "checkpoint", "download", saved["state_path"], "--output", str(work / "adapter")]
subprocess.run(command, check=True, capture_output=True)
config_file = next((work / "adapter").rglob("adapter_config.json"))
gguf = Path(sys.argv[1])
base = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
adapted = peft.PeftModel.from_pretrained(base, str(config_file.parent)).eval()
tokens = tokenizer.encode("User: What color is coffee?\n\nAssistant: Arr, brown it be!")
sampler = service.create_sampling_client(model_path=saved["sampler_path"])
here = sampler.compute_logprobs(tinker.ModelInput.from_ints(tokens)).result()[1:]
with torch.no_grad():
    rows = torch.log_softmax(adapted(torch.tensor([tokens[:-1]])).logits[0], -1)
there = [float(row[token]) for row, token in zip(rows, tokens[1:])]
difference = max(abs(a - b) for a, b in zip(here, there))
say(f"peft: {len(there)} logprobs, {sum(here):.3f} here and {sum(there):.3f} there, apart by at most {difference:.1e}")
assert difference < 1e-2
print("ok")
