"""Optimizer steps."""

from __future__ import annotations

from tinker import types
from tinker.types.optimizer import OptimParamsBase

from ..recording import Recording, scenario


@scenario("optim-step", "adam by default and with every field, the older keyword, dimuon both ways, a family the SDK does not know")
def optim_step(recording: Recording) -> None:
    trainer = recording.trainer()
    recording.result("adam", trainer.optim_step(types.AdamParams()))
    every = types.AdamParams(learning_rate=3e-5, beta1=0.8, beta2=0.999, eps=1e-8, weight_decay=0.01, grad_clip_norm=1.0)
    recording.result("adam, every field", trainer.optim_step(every))
    recording.result("adam_params", trainer.optim_step(adam_params=types.AdamParams(learning_rate=0.25)))
    recording.result("dimuon", trainer.optim_step(types.DimuonParams(learning_rate=0.02)))
    recording.result("dimuon, every field", trainer.optim_step(types.DimuonParams(learning_rate=0.02, grad_clip_norm=1.0, beta1=0.5)))
    recording.result("lion", trainer.optim_step(OptimParamsBase(type="lion", learning_rate=0.001)))
