"""Records what PyTorch's autograd makes of the ready losses, of fifty random ones, and of forty random ones at ties and bounds.

    python test/parity/record_traced_losses.py

Takes the graphs and the numbers from test/parity/traced_graphs.ts (run with node and tsx), evaluates each graph node by
node with torch in double precision, differentiates it, and writes recorded/traced-losses.json. Needs torch in the Python
that runs it (recorded with torch 2.15.0 on a CPU); torch is too heavy for CI, so the recording is kept.
"""

from __future__ import annotations

import json
import operator
import subprocess
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent.parent
OUT = Path(__file__).parent / "recorded" / "traced-losses.json"


def function_of(target: str):
    if target.startswith("operator."):
        return getattr(operator, target.removeprefix("operator."))
    found = torch
    for part in target.removeprefix("torch.").split("."):
        found = getattr(found, part)
    return found


def evaluate(graph: dict, inputs: dict[str, torch.Tensor]):
    values: dict[str, object] = {}

    def decode(argument):
        if isinstance(argument, list):
            return [decode(each) for each in argument]
        if not isinstance(argument, dict):
            return argument
        ((kind, value),) = argument.items()
        if kind == "ref":
            return values[value]
        if kind == "tuple":
            return tuple(decode(each) for each in value)
        if kind == "dict":
            return {key: decode(each) for key, each in value.items()}
        if kind == "slice":
            return slice(*(decode(each) for each in value))
        if kind == "float":
            return float(value)
        raise ValueError(kind)

    for node in graph["nodes"]:
        args = decode(node["args"])
        kwargs = {key: decode(value) for key, value in node["kwargs"].items()}
        if node["op"] == "placeholder":
            values[node["name"]] = inputs[node["target"]]
        elif node["op"] == "call_function":
            values[node["name"]] = function_of(node["target"])(*args, **kwargs)
        elif node["op"] == "call_method":
            values[node["name"]] = getattr(args[0], node["target"])(*args[1:], **kwargs)
        else:
            return args[0]
    raise ValueError("no output")


def main() -> None:
    made = subprocess.run(
        ["node", "--import", "tsx", "test/parity/traced_graphs.ts"], cwd=ROOT, check=True, capture_output=True
    )
    cases = []
    for case in json.loads(made.stdout):
        inputs = {}
        for name, value in zip(case["inputs"], case["values"], strict=True):
            tensor = torch.tensor(value["data"], dtype=torch.float64).reshape(value["shape"])
            inputs[name] = tensor.requires_grad_(name in case["derivedBy"])
        # `.float()` would round to single precision; here it only turns a comparison into numbers.
        original = torch.Tensor.float
        torch.Tensor.float = lambda self: self.to(torch.float64)
        loss, metrics = evaluate(case["graph"], inputs)
        torch.Tensor.float = original
        leaves = [inputs[name] for name in case["derivedBy"]]
        found = torch.autograd.grad(loss, leaves, allow_unused=True)
        gradients = [
            [0.0] * leaf.numel() if gradient is None else gradient.flatten().tolist()
            for leaf, gradient in zip(leaves, found, strict=True)
        ]
        case["loss"] = loss.item()
        case["gradients"] = gradients
        case["metrics"] = {key: float(value.detach()) for key, value in metrics.items()}
        if case["name"].startswith(("random", "tie")):
            # Made again from their seeds by whoever reads this.
            del case["graph"], case["values"]
        cases.append(case)
    OUT.write_text(
        json.dumps({"recorded_by": "test/parity/record_traced_losses.py", "torch": torch.__version__, "cases": cases})
        + "\n"
    )
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
