"""Records what PyTorch computes for the embedded service's losses, its optimizer and its model.

    pip install torch numpy
    python test/parity/torch_losses.py > test/parity/recorded/torch_losses.json

The TypeScript tests compare themselves with the recorded file; torch is too heavy to install for every run.
Nothing here is random: inputs are sines of their index, so that both sides can make them.
"""

import json
import math

import torch

torch.set_num_threads(1)
torch.manual_seed(0)


def wave(count, phase, amplitude=1.0, offset=0.0):
    """The numbers both sides use: amplitude * sin(12.9898 i + phase) + offset, rounded to float32."""
    values = [offset + amplitude * math.sin(12.9898 * i + phase) for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).to(torch.float32)


def clip_bounds(config, inputs):
    low = inputs.get("clip_low_threshold", torch.tensor(config.get("clip_low_threshold", 0.8)))
    high = inputs.get("clip_high_threshold", torch.tensor(config.get("clip_high_threshold", 1.2)))
    return low, high


def clamp(value, low, high):
    return torch.minimum(torch.maximum(value, low), high)


def compute(name, p, inputs, config):
    if name == "cross_entropy":
        return -(p * inputs["weights"]).sum()
    q, advantages = inputs["logprobs"], inputs["advantages"]
    ratio = torch.exp(p - q)
    if name == "importance_sampling":
        return -(ratio * advantages).sum()
    if name == "dro":
        return -(p * advantages - 0.5 * config.get("beta", 0.05) * (p - q) ** 2).sum()
    low, high = clip_bounds(config, inputs)
    if name == "ppo":
        return -torch.min(ratio * advantages, clamp(ratio, low, high) * advantages).sum()
    if name == "cispo":
        return -(clamp(ratio, low, high).detach() * p * advantages).sum()
    if name == "gspo":
        marked = inputs["sequence_ratio_mask"] != 0
        mean = (p.detach() - q)[marked].mean()
        sequence = torch.exp(mean + p - p.detach())
        return -torch.min(sequence * advantages, clamp(sequence, low, high) * advantages).sum()
    raise ValueError(name)


def loss_case(name, config=None, with_inputs=(), count=12):
    p = wave(count, 1.0, 0.9, -2.0).requires_grad_()
    available = {
        "weights": wave(count, 2.0, 0.7, 0.3),
        "logprobs": wave(count, 3.0, 0.8, -2.0),
        "advantages": wave(count, 4.0, 1.5, 0.1),
        "clip_low_threshold": wave(count, 5.0, 0.2, 0.6),
        "clip_high_threshold": wave(count, 6.0, 0.3, 1.4),
        "sequence_ratio_mask": (wave(count, 7.0) > 0).to(torch.float32),
    }
    inputs = {key: available[key] for key in with_inputs}
    loss = compute(name, p, inputs, config or {})
    loss.backward()
    return {
        "name": name,
        "config": config or {},
        "logprobs": p.detach().tolist(),
        "inputs": {key: value.tolist() for key, value in inputs.items()},
        "loss": loss.item(),
        "gradient": p.grad.tolist(),
    }


POLICY = ("logprobs", "advantages")
CLIPS = ("clip_low_threshold", "clip_high_threshold")


def losses():
    wide = {"clip_low_threshold": 0.5, "clip_high_threshold": 3.0}
    return [
        loss_case("cross_entropy", None, ("weights",)),
        loss_case("importance_sampling", None, POLICY),
        loss_case("ppo", None, POLICY),
        loss_case("ppo", wide, POLICY),
        loss_case("ppo", None, POLICY + CLIPS),
        loss_case("cispo", None, POLICY),
        loss_case("cispo", wide, POLICY + ("clip_high_threshold",)),
        loss_case("dro", None, POLICY),
        loss_case("dro", {"beta": 0.7}, POLICY),
        loss_case("gspo", None, POLICY + ("sequence_ratio_mask",)),
        loss_case("gspo", wide, POLICY + ("sequence_ratio_mask",)),
        loss_case("gspo", None, POLICY + CLIPS + ("sequence_ratio_mask",)),
    ]


def adamw(hyper, clip, steps=6, count=10):
    weights = torch.nn.Parameter(wave(count, 0.5, 0.4))
    optimizer = torch.optim.AdamW([weights], foreach=False, **hyper)
    trace = []
    for step in range(steps):
        gradient = wave(count, 10.0 + step, 0.5 * (step + 1))
        weights.grad = gradient.clone()
        norm = torch.nn.utils.clip_grad_norm_([weights], clip if clip > 0 else math.inf).item()
        optimizer.step()
        state = optimizer.state[weights]
        trace.append(
            {
                "gradient": gradient.tolist(),
                "norm": norm,
                "weights": weights.detach().tolist(),
                "m": state["exp_avg"].tolist(),
                "v": state["exp_avg_sq"].tolist(),
            }
        )
    betas = hyper["betas"]
    options = {
        "learningRate": hyper["lr"],
        "beta1": betas[0],
        "beta2": betas[1],
        "eps": hyper["eps"],
        "weightDecay": hyper["weight_decay"],
        "gradClipNorm": clip,
    }
    return {"options": options, "start": wave(count, 0.5, 0.4).tolist(), "steps": trace}


def optimizers():
    return [
        adamw({"lr": 1e-4, "betas": (0.9, 0.95), "eps": 1e-12, "weight_decay": 0.0}, 0.0),
        adamw({"lr": 3e-2, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}, 0.0),
        adamw({"lr": 1e-2, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.01}, 1.0),
    ]


SHAPE = {"layers": 2, "width": 16, "heads": 2, "hidden": 24, "vocabulary": 32, "context": 64}
RANK, ALPHA, ROPE_BASE, EPS = 2, 32, 10000.0, 1e-5


def base_tensors():
    width, hidden, vocabulary = SHAPE["width"], SHAPE["hidden"], SHAPE["vocabulary"]
    shapes = {"model.embed_tokens.weight": (vocabulary, width)}
    linears = {}
    for layer in range(SHAPE["layers"]):
        at = f"model.layers.{layer}"
        shapes[f"{at}.input_layernorm.weight"] = (width,)
        shapes[f"{at}.post_attention_layernorm.weight"] = (width,)
        for name in "qkvo":
            linears[f"{at}.self_attn.{name}_proj"] = (width, width)
        linears[f"{at}.mlp.gate_proj"] = (hidden, width)
        linears[f"{at}.mlp.up_proj"] = (hidden, width)
        linears[f"{at}.mlp.down_proj"] = (width, hidden)
    shapes["model.norm.weight"] = (width,)
    linears["lm_head"] = (vocabulary, width)
    shapes.update({f"{name}.weight": shape for name, shape in linears.items()})
    return shapes, linears


def model():
    shapes, linears = base_tensors()
    base, lora = {}, {}
    for index, (name, shape) in enumerate(shapes.items()):
        gain = len(shape) == 1
        base[name] = wave(math.prod(shape), float(index), 0.2 if gain else 0.5, 1.0 if gain else 0.0).reshape(shape)
    for index, (name, (outputs, inputs)) in enumerate(linears.items()):
        lora[f"base_model.model.{name}.lora_A.weight"] = wave(RANK * inputs, 100.0 + index, 0.1).reshape(RANK, inputs)
        lora[f"base_model.model.{name}.lora_B.weight"] = wave(outputs * RANK, 200.0 + index, 0.1).reshape(outputs, RANK)
    for tensor in lora.values():
        tensor.requires_grad_()

    def linear(name, x):
        prefix = f"base_model.model.{name}"
        low = x @ lora[f"{prefix}.lora_A.weight"].T
        return x @ base[f"{name}.weight"].T + (ALPHA / RANK) * (low @ lora[f"{prefix}.lora_B.weight"].T)

    def norm(name, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * base[name]

    tokens = torch.tensor([(7 * i * i + 3 * i + 1) % SHAPE["vocabulary"] for i in range(12)])
    inputs, targets = tokens[:-1], tokens[1:]
    rows, heads = len(inputs), SHAPE["heads"]
    head_width = SHAPE["width"] // heads
    angles = torch.arange(rows)[:, None] * ROPE_BASE ** (-torch.arange(0, head_width, 2) / head_width)
    cos, sin = torch.cos(angles), torch.sin(angles)

    def rotate(x):
        a, b = x[..., : head_width // 2], x[..., head_width // 2 :]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    x = base["model.embed_tokens.weight"][inputs]
    for layer in range(SHAPE["layers"]):
        at = f"model.layers.{layer}"
        normed = norm(f"{at}.input_layernorm.weight", x)
        q, k, v = (linear(f"{at}.self_attn.{n}_proj", normed).view(rows, heads, head_width).transpose(0, 1) for n in "qkv")
        attended = torch.nn.functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + linear(f"{at}.self_attn.o_proj", attended.transpose(0, 1).reshape(rows, -1))
        normed = norm(f"{at}.post_attention_layernorm.weight", x)
        gated = torch.nn.functional.silu(linear(f"{at}.mlp.gate_proj", normed)) * linear(f"{at}.mlp.up_proj", normed)
        x = x + linear(f"{at}.mlp.down_proj", gated)
    logits = linear("lm_head", norm("model.norm.weight", x))
    logprobs = torch.log_softmax(logits, -1).gather(1, targets[:, None])[:, 0]
    loss = -logprobs.sum()
    loss.backward()
    return {
        "shape": SHAPE,
        "rank": RANK,
        "tokens": tokens.tolist(),
        "logprobs": logprobs.tolist(),
        "loss": loss.item(),
        "gradients": {name: tensor.grad.flatten().tolist() for name, tensor in lora.items()},
    }


def rounded(value):
    """Nine digits name a float32 exactly."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


recorded_by = f"test/parity/torch_losses.py with torch {torch.__version__}"
print(json.dumps(rounded({"recordedBy": recorded_by, "losses": losses(), "optimizers": optimizers(), "model": model()})))
