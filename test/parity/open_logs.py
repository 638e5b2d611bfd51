"""Opens what the sinks wrote with TensorBoard's own reader and uploads it with wandb's own command, to a server that the test runs.

    open_logs.py <folder of event files> <folder of an offline run>

WANDB_BASE_URL says where that server is. Prints the scalars that TensorBoard found, as JSON.
"""

import sys

from parity_venv import VENV, enter

enter()

import json
import os
import subprocess

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events, run = sys.argv[1:]
accumulator = EventAccumulator(events, size_guidance={"scalars": 0})
accumulator.Reload()
scalars = {
    tag: [[scalar.step, scalar.value] for scalar in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]
}
environment = {**os.environ, "WANDB_API_KEY": "a" * 40, "WANDB_ERROR_REPORTING": "false"}
synced = subprocess.run(
    [str(VENV / "bin" / "wandb"), "sync", "--yes", run], env=environment, capture_output=True, text=True, timeout=120
)
print(json.dumps({"scalars": scalars, "code": synced.returncode, "wandb": synced.stdout + synced.stderr}))
