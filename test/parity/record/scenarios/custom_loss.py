"""Custom losses: the upload, a loss the server runs, a loss the client runs."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
from tinker import types
from tinker.lib.api_future_impl import _APIFuture
from tinker.lib.public_interfaces import training_client

from ..recording import Recording, scenario
from .losses import datum



def graph(dim: int) -> types.CustomLossGraph:
    """−Σ logprob · weight, as torch.fx would record it; `dim` only makes two of them differ."""
    product = [{"ref": "logprobs"}, {"ref": "weights"}]
    output = {"tuple": [{"ref": "neg"}, {"dict": {"custom/neg_ll:sum": {"ref": "neg"}}}]}
    return types.CustomLossGraph(
        nodes=[
            types.CustomLossNode(op="placeholder", name="logprobs", target="logprobs"),
            types.CustomLossNode(op="placeholder", name="weights", target="weights"),
            types.CustomLossNode(op="call_function", name="mul", target="operator.mul", args=product),
            types.CustomLossNode(op="call_method", name="sum_1", target="sum", args=[{"ref": "mul"}], kwargs={"dim": dim}),
            types.CustomLossNode(op="call_function", name="neg", target="operator.neg", args=[{"ref": "sum_1"}]),
            types.CustomLossNode(op="output", name="output", target="output", args=[output]),
        ]
    )


INPUTS = [types.CustomLossInput(name="logprobs", rank=1), types.CustomLossInput(name="weights", rank=1)]


@scenario(
    "create-custom-loss",
    "two uploads; tracing needs torch, so the graph is written by hand and sent by the SDK's own call below create_custom_loss",
    config={"custom_loss_server_side": True},
)
def create_custom_loss(recording: Recording) -> None:
    holder = recording.service().holder
    for dim, name in enumerate(("neg_ll", "neg_ll_again")):
        promise = holder.run_coroutine_threadsafe(holder._create_custom_loss(name, INPUTS, graph(dim))).result()
        future = _APIFuture(
            types.CreateCustomLossResponse, holder, promise, request_start_time=time.time(), request_type="CreateCustomLoss"
        )
        recording.result(name, future)


class _Tensor:
    """The few calls that forward_backward_custom makes on torch tensors, for a loss with a known gradient."""

    def __init__(self, data: object):
        self.data = np.asarray(data, dtype=np.float32)
        self.grad: np.ndarray | None = None

    def reshape(self, shape: list[int]) -> "_Tensor":
        return _Tensor(self.data.reshape(shape))

    def clone(self) -> "_Tensor":
        return self

    detach = sum = clone

    def requires_grad_(self, flag: bool) -> "_Tensor":
        return self

    def item(self) -> float:
        return float(self.data)


class _Loss(_Tensor):
    def __init__(self, logprobs: list[_Tensor]):
        super().__init__(sum(float((tensor.data**2).sum()) for tensor in logprobs))
        self._logprobs = logprobs

    def backward(self) -> None:
        for tensor in self._logprobs:
            tensor.grad = 2 * tensor.data


@scenario(
    "custom-loss-client",
    "forward_backward_custom with loss Σ logprob², gradient 2·logprob; a few numpy lines stand in for torch, the requests are the SDK's",
)
def custom_loss_client(recording: Recording) -> None:
    trainer = recording.trainer()
    data = [datum(), datum(weights=[1.0, 0.0, 1.0], advantages=[1.0, 1.0, 1.0])]
    training_client.torch = SimpleNamespace(tensor=_Tensor)
    try:
        future = trainer.forward_backward_custom(data, lambda _data, logprobs: (_Loss(logprobs), {"squares:sum": 2.5}))
        recording.result("forward_backward_custom", future)
    finally:
        training_client.torch = None
    recording.result("optim_step", trainer.optim_step(types.AdamParams()))
