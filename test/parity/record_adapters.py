"""Records small adapters and base models with what the public cookbook makes of them, and compares logits.

    python3 -m venv venv && venv/bin/pip install tinker-cookbook torch transformers peft
    npm run build && venv/bin/python test/parity/record_adapters.py

1. For one small random model of each family it writes recorded/adapters/<family>: the base model (names and layouts of the real ones), an
   adapter as the service exports it, the PEFT adapter of the cookbook's build_lora_adapter, the weights as its merge makes them.
2. With random small Qwen3 and Llama models of transformers it runs `tinker-rx checkpoint export` and `merge`, loads the results with peft and
   transformers, and writes the largest differences of logits to recorded/adapters/logits.json. It fails where one is too large.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import peft
import tinker_cookbook
import torch
import transformers
from safetensors.torch import load_file, save_file
from tinker_cookbook.weights import build_lora_adapter
from tinker_cookbook.weights._artifacts import load_adapter_weights
from tinker_cookbook.weights._merge import apply_merge_op, detect_merge_profile, plan_merge_ops

HERE = Path(__file__).resolve().parent
OUT = HERE / "recorded" / "adapters"
ROOT = HERE.parent.parent
RANK, ALPHA = 4, 32


def lora(weights, module, outputs, inputs, *, experts=None, shared=None):
    """Random factors; with `experts`, three-dimensional ones; `shared` names the factor that all experts share."""
    lead = () if experts is None else (experts,)
    one = () if experts is None else (1,)
    stem = f"base_model.model.{module}"
    weights[f"{stem}.lora_A.weight"] = torch.randn(*(one if shared == "A" else lead), RANK, inputs) * 0.1
    weights[f"{stem}.lora_B.weight"] = torch.randn(*(one if shared == "B" else lead), outputs, RANK) * 0.1


def base(shapes, dtype=torch.bfloat16):
    return {name: (torch.randn(*shape) * 0.1).to(dtype) for name, shape in shapes.items()}


def dense():
    weights = {}
    lora(weights, "model.layers.0.self_attn.q_proj", 12, 8)
    lora(weights, "model.layers.0.mlp.down_proj", 8, 6)
    lora(weights, "model.unembed_tokens", 16, 8)
    shapes = {
        "model.embed_tokens.weight": (16, 8),
        "model.layers.0.self_attn.q_proj.weight": (12, 8),
        "model.layers.0.mlp.down_proj.weight": (8, 6),
        "model.norm.weight": (8,),
        "lm_head.weight": (16, 8),
    }
    return {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}, base(shapes), weights


def separate_experts():
    weights = {}
    layer = "model.layers.0.mlp.experts"
    lora(weights, f"{layer}.w1", 6, 8, experts=3, shared="A")
    lora(weights, f"{layer}.w3", 6, 8, experts=3, shared="A")
    lora(weights, f"{layer}.w2", 8, 6, experts=3, shared="B")
    lora(weights, "model.layers.0.self_attn.o_proj", 8, 12)
    shapes = {"model.layers.0.self_attn.o_proj.weight": (8, 12), "lm_head.weight": (16, 8)}
    for i in range(3):
        shapes[f"{layer}.{i}.gate_proj.weight"] = (6, 8)
        shapes[f"{layer}.{i}.up_proj.weight"] = (6, 8)
        shapes[f"{layer}.{i}.down_proj.weight"] = (8, 6)
    return {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"]}, base(shapes, torch.float16), weights


def gpt_oss():
    weights = {}
    lora(weights, "model.layers.0.attn.q_proj", 12, 8)
    lora(weights, "model.layers.0.mlp.experts.w1", 6, 8, experts=2, shared="A")
    lora(weights, "model.layers.0.mlp.experts.w3", 6, 8, experts=2)
    lora(weights, "model.layers.0.mlp.experts.w2", 8, 6, experts=2)
    shapes = {
        "model.layers.0.self_attn.q_proj.weight": (12, 8),
        "model.layers.0.mlp.experts.gate_up_proj": (2, 8, 12),
        "model.layers.0.mlp.experts.down_proj": (2, 6, 8),
        "lm_head.weight": (16, 8),
    }
    return {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"]}, base(shapes), weights


def qwen3_5_moe():
    weights = {}
    attention = "model.layers.0.linear_attn"
    for name, rows in (("q", 4), ("k", 4), ("v", 8)):
        lora(weights, f"{attention}.in_proj_{name}", rows, 8)
    lora(weights, "model.layers.0.mlp.experts.w1", 5, 8, experts=2, shared="A")
    lora(weights, "model.layers.0.mlp.experts.w3", 5, 8, experts=2, shared="A")
    lora(weights, "model.layers.0.mlp.experts.w2", 8, 5, experts=2, shared="B")
    shapes = {
        "model.language_model.layers.0.linear_attn.in_proj_qkv.weight": (16, 8),
        "model.language_model.layers.0.mlp.experts.gate_up_proj": (2, 10, 8),
        "model.language_model.layers.0.mlp.experts.down_proj": (2, 8, 5),
        "model.visual.patch.weight": (4, 4),
        "lm_head.weight": (16, 8),
    }
    config = {"model_type": "qwen3_5_moe", "architectures": ["Qwen3_5MoeForConditionalGeneration"]}
    return config, base(shapes, torch.float32), weights


def nemotron():
    weights = {}
    lora(weights, "model.layers.0.mixer.gate_proj", 6, 8)
    lora(weights, "model.layers.0.mixer.x_proj", 6, 8)
    lora(weights, "model.layers.1.mixer.experts.w1", 6, 8, experts=2, shared="A")
    lora(weights, "model.layers.1.mixer.experts.w2", 8, 6, experts=2)
    for factor in "AB":
        weights[f"base_model.model.model.layers.1.mixer.experts.w3.lora_{factor}.weight"] = torch.zeros(2, 0, 0)
    shapes = {"backbone.layers.0.mixer.in_proj.weight": (15, 8), "lm_head.weight": (16, 8)}
    for i in range(2):
        shapes[f"backbone.layers.1.mixer.experts.{i}.up_proj.weight"] = (6, 8)
        shapes[f"backbone.layers.1.mixer.experts.{i}.down_proj.weight"] = (8, 6)
    return {"model_type": "nemotron_h", "architectures": ["NemotronHForCausalLM"]}, base(shapes), weights


FAMILIES = {
    "dense": dense,
    "separate_experts": separate_experts,
    "gpt_oss": gpt_oss,
    "qwen3_5_moe": qwen3_5_moe,
    "nemotron": nemotron,
}


def write_adapter(folder, weights, base_name):
    folder.mkdir(parents=True)
    save_file(weights, str(folder / "adapter_model.safetensors"))
    config = {"r": RANK, "lora_alpha": ALPHA, "base_model_name_or_path": base_name}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")


def record():
    shutil.rmtree(OUT, ignore_errors=True)
    for number, (name, make) in enumerate(FAMILIES.items()):
        torch.manual_seed(number)
        config, tensors, weights = make()
        folder = OUT / name
        (folder / "base").mkdir(parents=True)
        save_file(tensors, str(folder / "base" / "model.safetensors"), metadata={"format": "pt"})
        (folder / "base" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        write_adapter(folder / "adapter", weights, "example/base")
        given = {"base_model": str(folder / "base"), "adapter_path": str(folder / "adapter")}
        build_lora_adapter(**given, output_path=str(folder / "peft"))
        settings = json.loads((folder / "peft" / "adapter_config.json").read_text())
        settings["base_model_name_or_path"] = "example/base"
        (folder / "peft" / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n")
        # What build_hf_model does with the weights; the rest of it wants a configuration that transformers can load.
        adapter, adapter_config = load_adapter_weights(folder / "adapter")
        profile = detect_merge_profile(config, set(tensors))
        merged = {key: value.clone() for key, value in tensors.items()}
        for ops in plan_merge_ops(adapter, adapter_config, set(tensors), profile).values():
            for op in ops:
                apply_merge_op(merged, op)
        save_file(merged, str(folder / "merged.safetensors"), metadata={"format": "pt"})


def cli(*words):
    subprocess.run(["node", str(ROOT / "dist/cli/main.js"), *words], check=True, capture_output=True, text=True)


def real_model(kind, tied):
    torch.manual_seed(7)
    common = dict(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=tied,
    )
    if kind == "qwen3":
        return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**common, head_dim=8))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**common))


@torch.no_grad()
def logits():
    prompt = torch.arange(1, 41).reshape(2, 20)
    results = []
    for kind in ("qwen3", "llama"):
        for tied in (False, True):
            for dtype in (torch.float32, torch.bfloat16):
                with tempfile.TemporaryDirectory() as scratch:
                    root = Path(scratch)
                    model = real_model(kind, tied).to(dtype)
                    # Small enough that there are several files of weights.
                    model.save_pretrained(root / "base", max_shard_size="24KB")
                    weights = {}
                    for name, module in model.named_modules():
                        if isinstance(module, torch.nn.Linear):
                            service = "model.unembed_tokens" if name == "lm_head" else name
                            lora(weights, service, *module.weight.shape)
                    write_adapter(root / "adapter", weights, str(root / "base"))
                    cli("checkpoint", "export", str(root / "adapter"), "--peft", "--for", "peft", "-o", str(root / "peft"))
                    cli("checkpoint", "merge", str(root / "adapter"), "-o", str(root / "merged"))

                    load = transformers.AutoModelForCausalLM.from_pretrained
                    # By hand: a linear layer of its own for every module, its weights in float32.
                    by_hand = load(root / "base", dtype=torch.float32)
                    before = by_hand(prompt).logits
                    if tied:
                        by_hand.lm_head.weight = torch.nn.Parameter(by_hand.lm_head.weight.clone())
                        by_hand.config.tie_word_embeddings = False
                    linears = [(n, m) for n, m in by_hand.named_modules() if isinstance(m, torch.nn.Linear)]
                    for name, module in linears:
                        stem = f"base_model.model.{'model.unembed_tokens' if name == 'lm_head' else name}"
                        a, b = weights[f"{stem}.lora_A.weight"], weights[f"{stem}.lora_B.weight"]
                        module.weight.add_((ALPHA / RANK) * (b.double() @ a.double()).float())
                    expected = by_hand(prompt).logits
                    # A merged model has weights of the base model's type.
                    for _, module in linears:
                        module.weight.copy_(module.weight.to(dtype).float())
                    rounded = by_hand(prompt).logits
                    adapted = peft.PeftModel.from_pretrained(load(root / "base", dtype=torch.float32), root / "peft")
                    loaded = [n for n, _ in adapted.named_parameters() if "lora_A" in n]
                    merged = load(root / "merged", dtype=torch.float32)
                    difference = lambda model, other: (model(prompt).logits - other).abs().max().item()
                    results.append(
                        {
                            "model": kind,
                            "tied": tied,
                            "dtype": str(dtype).removeprefix("torch."),
                            "files": len(list((root / "merged").glob("*.safetensors"))),
                            "modules": len(loaded),
                            "adapterChangesLogitsBy": (expected - before).abs().max().item(),
                            "peftDiffersBy": difference(adapted, expected),
                            "mergedDiffersBy": difference(merged, rounded),
                        }
                    )
                    print(json.dumps(results[-1]))
    for result in results:
        assert result["adapterChangesLogitsBy"] > 0.1, result
        assert result["peftDiffersBy"] < 1e-4, result
        # In bfloat16 a sum that lies on the border between two values may be rounded either way.
        assert result["mergedDiffersBy"] < (1e-4 if result["dtype"] == "float32" else 1e-2), result
    versions = {
        "tinker-cookbook": getattr(tinker_cookbook, "__version__", "?"),
        "peft": peft.__version__,
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
    }
    (OUT / "logits.json").write_text(json.dumps({"versions": versions, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    if "--logits" not in sys.argv:
        record()
    logits()
