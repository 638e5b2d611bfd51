"""Writes fixtures/python-json.json: the shape of what the Python `tinker` command prints with `--format json`.

Run with a Python that has the SDK installed, after `npm run build` (facts were recorded from tinker 0.36.0):
    python test/unit/cli/python_json.py

The commands run against the embedded service, with one run of one step, a state that expires and a sampler.
test/loopback/cliPythonJson.test.ts makes the same things and runs the same commands of ours.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta

HERE = pathlib.Path(__file__).resolve().parent
LOCAL = (HERE.parents[2] / "dist" / "local" / "index.js").as_uri()
SERVE = f"""
import {{ LocalTinker }} from '{LOCAL}';
const local = await LocalTinker.start({{ flags: {{ pjwtAuthEnabled: true }} }});
console.log(JSON.stringify({{ url: local.url, key: local.apiKey }}));
process.stdin.on('end', () => local.close().then(() => process.exit(0))).resume();
"""
# Objects whose keys are names of things, not of fields.
OPEN = {"user_metadata", "sessions"}


def shape(value, path="$", out=None):
    """Every path of a JSON value, with the types that stand there."""
    out = {} if out is None else out
    kind = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    out.setdefault(path, set()).add("null" if value is None else kind[type(value)])
    if isinstance(value, dict):
        is_open = path.rsplit(".", 1)[-1] in OPEN
        for key, child in value.items():
            shape(child, f"{path}.*" if is_open else f"{path}.{key}", out)
    if isinstance(value, list):
        for child in value:
            shape(child, f"{path}[]", out)
    return out


def make_run():
    import tinker
    from tinker import types

    service = tinker.ServiceClient()
    client = service.create_lora_training_client("tinker-rx/tiny", rank=4, user_metadata={"purpose": "shapes"})
    datum = types.Datum(
        model_input=types.ModelInput.from_ints([1, 2, 3]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=[2, 3, 4], dtype="int64"),
            "weights": types.TensorData(data=[1.0, 1.0, 1.0], dtype="float32"),
        },
    )
    client.forward_backward([datum], "cross_entropy").result()
    client.optim_step(types.AdamParams()).result()
    state = client.save_state("state", ttl_seconds=7200).result().path
    client.save_weights_for_sampler("sampler").result()
    service.close("success").result()
    return state


def main():
    from tinker._version import __version__

    folder = tempfile.mkdtemp()
    script = pathlib.Path(folder) / "serve.mjs"
    script.write_text(SERVE)
    server = subprocess.Popen(["node", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    served = json.loads(server.stdout.readline())
    os.environ.update(
        TINKER_BASE_URL=served["url"], TINKER_API_KEY=served["key"], TINKER_TELEMETRY="0", HOME=folder
    )
    state = make_run()
    run = state.split("/")[2]
    session = run.split(":")[0]
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    window = [(hour + timedelta(hours=offset)).strftime("%Y-%m-%dT%H:%M:%SZ") for offset in (-1, 1)]
    commands = {
        "auth whoami": [],
        "model list": [],
        "run list": [],
        "run info": [run],
        "checkpoint list": [],
        "checkpoint list --run-id": ["--run-id", run],
        "checkpoint info": [state],
        "checkpoint download": [state, "-o", folder],
        "session export-trace": [session, "-o", f"{folder}/trace"],
        "session export-trace --url-only": [session, "--url-only"],
        "billing usage": window,
        "billing checkpoint-storage": [],
        "checkpoint delete": [state, "-y"],
    }
    shapes = {}
    for name, args in commands.items():
        words = [word for word in name.split(" ") if not word.startswith("--")]
        command = [sys.executable, "-m", "tinker.cli", "--format", "json", *words, *args]
        printed = subprocess.run(command, capture_output=True, text=True)
        assert printed.returncode == 0, (name, printed.stdout, printed.stderr)
        found = shape(json.loads(printed.stdout))
        shapes[name] = {path: sorted(kinds) for path, kinds in sorted(found.items())}
    server.stdin.close()
    server.wait()
    target = HERE / "fixtures" / "python-json.json"
    target.write_text(json.dumps({"version": __version__, "commands": shapes}, indent=1) + "\n")


main()
