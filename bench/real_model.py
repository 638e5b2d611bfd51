"""The PyTorch side of realModel.mjs: SmolLM2 in float32 on two threads. Reads what to do from standard input, a word a line, and answers with
the seconds it took."""

import sys
import time
from pathlib import Path

import peft
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

GGUF = Path(sys.argv[1])
ROWS, TOKENS, RANK, GREEDY, SAMPLES, NEW = (int(value) for value in sys.argv[2:8])
torch.set_num_threads(int(sys.argv[8]))
torch.manual_seed(0)
tokenizer = AutoTokenizer.from_pretrained(GGUF.parent, gguf_file=GGUF.name)
model = AutoModelForCausalLM.from_pretrained(GGUF.parent, gguf_file=GGUF.name, dtype=torch.float32)
model.eval()
prompt = tokenizer.apply_chat_template(
    [{"role": "user", "content": "What is the capital of France?"}], add_generation_prompt=True, return_dict=True, return_tensors="pt"
)
print(",".join(str(token) for token in prompt["input_ids"][0].tolist()), flush=True)
lora = peft.LoraConfig(r=RANK, lora_alpha=32, target_modules="all-linear")
trained = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(GGUF.parent, gguf_file=GGUF.name, dtype=torch.float32), lora)
optimizer = torch.optim.AdamW([each for each in trained.parameters() if each.requires_grad], lr=1e-4)
batch = torch.tensor([[(37 * i + 101 * row) % 40000 for i in range(TOKENS)] for row in range(ROWS)])
targets = torch.tensor([[(37 * i + 101 * (row + 7)) % 40000 for i in range(TOKENS)] for row in range(ROWS)])


def train():
    logits = trained(batch).logits
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").backward()
    optimizer.step()
    optimizer.zero_grad()


def greedy():
    with torch.no_grad():
        model.generate(**prompt, do_sample=False, min_new_tokens=GREEDY, max_new_tokens=GREEDY)


def sample():
    with torch.no_grad():
        model.generate(**prompt, do_sample=True, num_return_sequences=SAMPLES, min_new_tokens=NEW, max_new_tokens=NEW)


work = {"train": train, "greedy": greedy, "sample": sample}
for line in sys.stdin:
    begun = time.perf_counter()
    work[line.strip()]()
    print(time.perf_counter() - begun, flush=True)
