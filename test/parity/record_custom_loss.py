"""Records what PyTorch makes of custom losses: python test/parity/record_custom_loss.py

Traces each loss below with the real SDK, runs it with autograd in double precision, and writes
recorded/custom-loss.json: the graph as the SDK uploads it, inputs, loss, gradient and metrics.
Needs tinker and torch in the Python that runs it; torch is too heavy for CI, so the recording is kept.
"""

from __future__ import annotations

import json
from pathlib import Path

import tinker
import torch
from tinker.lib.public_interfaces.custom_loss import encode_graph, trace_loss

F = torch.nn.functional
OUT = Path(__file__).parent / "recorded" / "custom-loss.json"


def neg_ll(logprobs, weights):
    loss = -(logprobs * weights).sum()
    return loss, {"custom/neg_ll:sum": loss}


def ppo_by_hand(logprobs, old, advantages):
    ratio = torch.exp(logprobs - old)
    clipped = torch.clamp(ratio, 0.8, 1.2)
    loss = -torch.min(ratio * advantages, clipped * advantages).sum()
    hit = ((ratio < 0.8) | (ratio > 1.2)).float()
    return loss, {"custom/clip_fraction:mean": hit.mean(), "custom/ratio:mean": ratio.detach().mean()}


def dpo_like(logprobs, reference, mask):
    margin = ((logprobs - reference) * mask).sum() / mask.sum().clamp(min=1.0)
    loss = -F.logsigmoid(0.7 * margin)
    return loss, {"custom/margin:mean": margin}


def focal(logprobs, weights):
    p = logprobs.exp()
    loss = -((1 - p) ** 2 * logprobs * weights).sum() / (weights.abs().sum() + 1e-6)
    return loss, {"custom/p:mean": p.mean()}


def elementwise(logprobs, weights):
    a = torch.tanh(logprobs) + torch.sigmoid(weights) - torch.relu(logprobs + 1.0)
    b = torch.sqrt(torch.abs(a) + 1.0) / torch.log1p(weights**2 + 1.5)
    c = torch.where(b > 0.5, b.square(), torch.rsqrt(b + 1.0))
    d = torch.maximum(c, weights * 0.1).neg() + torch.minimum(a, c) + F.softplus(a) + torch.expm1(a * 0.1)
    return d.mean(), {"custom/c:sum": c.sum(), "custom/big:sum": (b > 0.5).sum()}


def reductions(logprobs, weights):
    total = torch.logsumexp(logprobs, dim=0) + logprobs.max() - logprobs.min() * 0.5
    spread = logprobs.std() + logprobs.var(unbiased=False)
    running = torch.cumsum(logprobs * weights, dim=0)
    soft = (torch.softmax(logprobs, dim=-1) * weights).sum() + F.log_softmax(weights * logprobs, dim=0)[0]
    loss = total + spread + running.mean() + soft
    return loss, {"custom/spread:mean": spread}


def shapes(logprobs, weights):
    first, rest = logprobs[0], logprobs[1:]
    pairs = torch.stack([rest, weights[1:]], dim=1)
    folded = pairs.unsqueeze(0).expand(2, -1, -1).transpose(1, 2).reshape(-1)
    joined = torch.cat([folded, logprobs[::2], logprobs.flip(0)[:2]])
    picked = logprobs[weights > 0].sum() + logprobs[..., -1]
    loss = (joined * joined).sum() * 0.1 + first * picked / logprobs.shape[0]
    return loss, {"custom/n:sum": torch.ones_like(joined).sum()}


def topk_targets(logprobs, weights):
    best = logprobs.max(dim=1)
    values, _ = best[0], best[1]
    per_row = (logprobs * weights).sum(dim=-1, keepdim=True).squeeze(-1)
    loss = -(per_row + 0.1 * values).mean() + logprobs.mean(dim=0).pow(2).sum()
    return loss, {"custom/best:mean": values.mean()}


def stop_gradient(logprobs, old, advantages):
    weight = torch.clamp(torch.exp((logprobs - old).detach()), max=2.0)
    masked = (weight * logprobs * advantages).masked_fill(advantages == 0, 0.0)
    keep = torch.logical_and(advantages != 0, ~(old < -3.0))
    loss = -torch.where(keep, masked, torch.zeros_like(masked)).sum() / logprobs.numel()
    return loss, {"custom/kept:sum": keep.float().sum()}


def vector(*numbers: float) -> list[float]:
    return list(numbers)


P = vector(-0.3, -1.2, -2.5, -0.05, -4.0)
CASES = [
    (neg_ll, {"weights": vector(0.0, 1.0, 0.5, 1.0, -1.0)}),
    (ppo_by_hand, {"old": vector(-0.5, -1.0, -2.5, -0.6, -3.0), "advantages": vector(1.0, -2.0, 0.5, 3.0, -1.0)}),
    (dpo_like, {"reference": vector(-0.4, -1.0, -2.0, -0.3, -3.5), "mask": vector(0.0, 1.0, 1.0, 1.0, 0.0)}),
    (focal, {"weights": vector(1.0, 1.0, 0.0, 2.0, 0.5)}),
    (elementwise, {"weights": vector(0.3, -1.1, 2.0, 0.0, 0.7)}),
    (reductions, {"weights": vector(0.3, -1.1, 2.0, 0.2, 0.7)}),
    (shapes, {"weights": vector(1.0, -1.0, 0.5, 0.0, 2.0)}),
    (topk_targets, {"logprobs": [[-0.5, -1.5], [-2.0, -0.7], [-3.0, -0.2]], "weights": [[0.5, 0.5], [1.0, 0.0], [0.3, 0.7]]}),
    (stop_gradient, {"old": vector(-0.5, -1.0, -2.5, -0.6, -3.5), "advantages": vector(1.0, 0.0, 0.5, 3.0, -1.0)}),
]


def record(fn, inputs: dict) -> dict:
    values = {"logprobs": P, **inputs}
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}
    handle = trace_loss(fn, {name: tensor.ndim for name, tensor in tensors.items()}, "session")
    logprobs = tensors.pop("logprobs").requires_grad_()
    loss, metrics = handle.graph(logprobs, *tensors.values())
    loss.backward()
    return {
        "name": fn.__name__,
        "inputs": [item.model_dump() for item in handle.inputs],
        "graph": encode_graph(handle).model_dump(),
        "values": values,
        "loss": loss.item(),
        "gradient": logprobs.grad.flatten().tolist(),
        "metrics": {key: float(value) for key, value in metrics.items()},
    }


def main() -> None:
    cases = [record(fn, inputs) for fn, inputs in CASES]
    recorded = {
        "recorded": {"by": "test/parity/record_custom_loss.py", "sdk": tinker.__version__, "torch": torch.__version__},
        "cases": cases,
    }
    OUT.write_text(json.dumps(recorded, indent=1) + "\n")
    print(f"{len(cases)} losses, {OUT.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
