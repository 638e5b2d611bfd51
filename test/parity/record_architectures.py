"""Records tiny random models of each architecture that the embedded service loads, with what transformers and gguf make of them.

    python3 -m venv venv && venv/bin/pip install torch transformers gguf safetensors
    venv/bin/python test/parity/record_architectures.py

Writes recorded/architectures/<name>: the folder of a model as transformers saves it, and `model.gguf` with the same weights, stored in the
types that are read here. `expected.json` has logits of the folder's weights and of the weights that gguf's own code dequantises, in base64
of float32, and the SHA-256 of each of the latter tensors. A second recording with the same releases gives the same files.
"""

import base64
import hashlib
import json
import shutil
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

OUT = Path(__file__).resolve().parent / "recorded" / "architectures"
VOCABULARY, WIDTH, HIDDEN = 272, 32, 64
TOKENS = [3, 250, 17, 17, 99, 0, 271, 42, 101, 7, 256, 31]
SIZES = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=2, bos_token_id=264, eos_token_id=265)

LLAMA3_ROPE = dict(rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)

MODELS = {
    # Grouped heads, stretched rotary frequencies, tied head; bfloat16 in two files.
    "llama": dict(
        model=lambda: LlamaForCausalLM(
            LlamaConfig(
                **SIZES, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=131072, tie_word_embeddings=True,
                rms_norm_eps=1e-5, rope_parameters=dict(rope_theta=500000.0, **LLAMA3_ROPE),
            )
        ),
        dtype=torch.bfloat16, shard="30KB", arch=gguf.MODEL_ARCH.LLAMA, pre="llama-bpe", types=["Q4_1", "Q8_0", "BF16"],
    ),
    # Biases, a head of its own; float16.
    "qwen2": dict(
        model=lambda: Qwen2ForCausalLM(
            Qwen2Config(
                **SIZES, num_attention_heads=4, num_key_value_heads=1, max_position_embeddings=512, tie_word_embeddings=False,
                rms_norm_eps=1e-6, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
            )
        ),
        dtype=torch.float16, shard="1GB", arch=gguf.MODEL_ARCH.QWEN2, pre="qwen2", types=["F16", "Q4_0"],
    ),
    # Norms of queries and keys, heads wider than their share; float32.
    "qwen3": dict(
        model=lambda: Qwen3ForCausalLM(
            Qwen3Config(
                **SIZES, num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=512, tie_word_embeddings=True,
                rms_norm_eps=1e-6, rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
            )
        ),
        dtype=torch.float32, shard="1GB", arch=gguf.MODEL_ARCH.QWEN3, pre="qwen2", types=["F32", "Q8_0", "Q4_1"],
    ),
}  # fmt: skip


def encoded(values) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.float32).tobytes()).decode()


def digest(values) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, dtype=np.float32).tobytes()).hexdigest()


def logits(model) -> str:
    with torch.no_grad():
        return encoded(model.float()(torch.tensor([TOKENS])).logits[0].numpy())


def randomize(model) -> None:
    """Larger than usual, and no gain or bias at its start value: a wrong bias or norm must change the logits."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(1 + 0.2 * torch.randn_like(weight) if "norm" in name else 0.15 * torch.randn_like(weight))


def permute(weights: np.ndarray, heads: int) -> np.ndarray:
    """As llama.cpp's convert_hf_to_gguf does for Llama."""
    return weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def unpermute(weights: np.ndarray, heads: int) -> np.ndarray:
    return weights.reshape(heads, weights.shape[0] // heads // 2, 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def add_tokenizer(writer: gguf.GGUFWriter, pre: str) -> None:
    """Each byte, eight merges, eight control tokens."""
    printable = [b for b in range(256) if 32 < b < 127 or (b > 160 and b != 173)]
    others = iter(range(256, 512))
    bytes_ = [chr(b) if b in printable else chr(next(others)) for b in range(256)]
    pairs = ["h e", "l l", "Ġ Ġ", "he ll", "hell o", "Ġ w", "1 2", "12 3"]
    controls = [f"<|control{i}|>" for i in range(8)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(bytes_ + [pair.replace(" ", "") for pair in pairs] + controls)
    writer.add_token_types([gguf.TokenType.NORMAL] * 264 + [gguf.TokenType.CONTROL] * 8)
    writer.add_token_merges(pairs)
    writer.add_bos_token_id(264)
    writer.add_eos_token_id(265)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")


def write_gguf(model, path: Path, arch, pre: str, types: list[str]) -> dict:
    """Writes the weights, and gives what gguf's own code reads from what was written, by the names of Hugging Face."""
    config = model.config
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    writer.add_name("Tiny")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    add_tokenizer(writer, pre)
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_rope_dimension_count(width)
        writer.add_tensor("rope_freqs.weight", rope_factors(config.rope_parameters, width))
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    read = {}
    for index, (name, tensor) in enumerate(model.state_dict().items()):
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2])
        turned = heads is not None and arch == gguf.MODEL_ARCH.LLAMA
        stored = permute(values, heads) if turned else values
        # Rows of one block, vectors in full.
        type_ = "F32" if values.ndim == 1 else types[index % len(types)]
        quantized = gguf.quants.quantize(stored, gguf.GGMLQuantizationType[type_])
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), quantized, raw_dtype=gguf.GGMLQuantizationType[type_])
        back = gguf.quants.dequantize(quantized, gguf.GGMLQuantizationType[type_])
        read[name] = (unpermute(back, heads) if turned else back).reshape(values.shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read


def rope_factors(rope: dict, width: int) -> np.ndarray:
    """As llama.cpp's convert_hf_to_gguf."""
    frequencies = 1.0 / (rope["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float32) / width))
    low, high, context = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    factors = []
    for frequency in frequencies:
        wavelength = 2 * np.pi / frequency
        if wavelength < context / high:
            factors.append(1)
        elif wavelength > context / low:
            factors.append(rope["factor"])
        else:
            smooth = (context / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


for name, recipe in MODELS.items():
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    torch.manual_seed(len(name))
    model = recipe["model"]().eval()
    randomize(model)
    model.to(recipe["dtype"])
    model.save_pretrained(folder, max_shard_size=recipe["shard"])
    expected = {"tokens": TOKENS, "logits": logits(model)}
    dequantized = write_gguf(model, folder / "model.gguf", recipe["arch"], recipe["pre"], recipe["types"])
    model.load_state_dict({key: torch.from_numpy(value.copy()) for key, value in dequantized.items()}, strict=False)
    expected["ggufLogits"] = logits(model)
    expected["ggufTensors"] = {key: digest(value) for key, value in dequantized.items()}
    expected["recorded"] = {
        "by": "test/parity/record_architectures.py",
        "with": f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}",
    }
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
