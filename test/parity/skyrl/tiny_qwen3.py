"""Writes a tiny Qwen3 with random weights, and a tokenizer of one token a byte, into a folder.

    python tiny_qwen3.py FOLDER

Token 0…255 is that byte; 256…258 are the special tokens below.
"""

from __future__ import annotations

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SEED = 20


def byte_alphabet() -> list[str]:
    """The printable stand-in of every byte, as byte-level tokenizers write them: itself, else the next free character."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = (byte for byte in range(256) if byte not in printable)
    stand_in = {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}
    return [stand_in[byte] for byte in range(256)]


def write(folder: str) -> None:
    vocabulary = {character: byte for byte, character in enumerate(byte_alphabet())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[2], pad_token=SPECIAL[0])
    assert fast("aé")["input_ids"] == [0x61, 0xC3, 0xA9] and len(fast) == 259
    fast.save_pretrained(folder)

    torch.manual_seed(SEED)
    config = Qwen3Config(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=512,
        # With the usual 0.02 a random unembedding, which the server does not train, cannot tell tokens apart.
        initializer_range=0.15,
        tie_word_embeddings=False,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
        dtype="float32",
    )
    model = Qwen3ForCausalLM(config)
    model.save_pretrained(folder, safe_serialization=True)
    print(f"{folder}: Qwen3 of {sum(p.numel() for p in model.parameters()):,} parameters, {len(fast)} tokens")


if __name__ == "__main__":
    write(sys.argv[1])
