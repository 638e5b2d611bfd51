"""Starts a real SkyRL server on this machine's CPU and takes this package's client through a life against it.

    npm run build && python3 test/parity/skyrl_server.py          # install where missing, serve, run skyrl_life.mjs, stop
    python3 test/parity/skyrl_server.py --life skyrl_rl.mjs       # the same with another program: reinforcement learning
    python3 test/parity/skyrl_server.py --serve                   # serve until interrupted; prints the URL

skyrl.md beside this file says what is installed and what is printed. By hand, not in CI: the install is about 7 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PARTS = HERE / "skyrl"
PACKAGE = "skyrl[tinker,jax]"
INSTALL_GB = 15  # with pip's downloads
MODEL = "tiny-qwen3"
# Room for the models of one life, and for one more that must be refused.
BACKEND = {"max_lora_adapters": 5, "max_lora_rank": 16}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=ROOT / "node_modules" / ".cache" / "skyrl-venv")
    parser.add_argument("--source", type=Path, help="a checkout of SkyRL to run instead of the installed release")
    parser.add_argument("--work", type=Path, help="folder for model, checkpoints and log, kept; default: a temporary one")
    parser.add_argument("--port", type=int, default=0, help="default: any free one")
    parser.add_argument("--life", default="skyrl_life.mjs", help="the program to run, a file beside this one")
    parser.add_argument("--serve", action="store_true", help="run no client")
    parser.add_argument("--start-seconds", type=int, default=300, help="longest wait for the server to answer")
    parser.add_argument("--life-seconds", type=int, default=1200, help="longest run of the client")
    return parser.parse_args()


def install(venv: Path) -> Path:
    """The environment's Python; makes the environment where it is missing."""
    python, ready = venv / "bin" / "python", venv / ".ready"
    if ready.exists():
        return python
    venv.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(venv.parent).free / 1e9
    if free < INSTALL_GB:
        raise SystemExit(f"{PACKAGE} needs {INSTALL_GB} GB of disk, {venv.parent} has {free:.0f}")
    print(f"installing {PACKAGE} into {venv}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
    subprocess.run(pip, check=True, timeout=3600)
    # Written last, so that an interrupted install is not taken for a finished one.
    ready.touch()
    return python


def environment(python: Path, source: Path | None) -> dict[str, str]:
    modules = [str(PARTS / "site"), *([str(source.resolve())] if source else [])]
    return os.environ | {
        "PATH": os.pathsep.join([str(PARTS / "bin"), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(modules),
        "SKYRL_PYTHON": str(python.absolute()),
        "JAX_PLATFORMS": "cpu",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(work: Path, env: dict[str, str], port: int) -> subprocess.Popen[bytes]:
    """The server, as its own users start it; the model's name is a folder that it finds in its working directory."""
    command = ["uv", "run", "-m", "skyrl.tinker.api", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--base-model", MODEL, "--backend", "jax", "--backend-config", json.dumps(BACKEND)]
    command += ["--database-url", f"sqlite:///{work / 'tinker.db'}", "--checkpoints-base", str(work / "checkpoints")]
    command[0] = str(PARTS / "bin" / "uv")
    with open(work / "server.log", "wb") as log:
        # A session of its own: server and engine are stopped together, and nothing else is.
        return subprocess.Popen(
            command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def wait_until_up(server: subprocess.Popen[bytes], url: str, seconds: int) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with {server.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/api/v1/healthz", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise TimeoutError(f"the server did not answer within {seconds} s")


def stop(server: subprocess.Popen[bytes]) -> None:
    """Ends the server and its engine: asks, waits 20 seconds, insists."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, sign)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            server.poll()
            try:
                os.killpg(server.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.2)


def run(options: argparse.Namespace, python: Path, work: Path) -> int:
    env = environment(python, options.source)
    if not (work / MODEL / "config.json").exists():
        writer = [str(python), str(PARTS / "tiny_qwen3.py"), MODEL]
        subprocess.run(writer, cwd=work, env=env, check=True, timeout=300)
    port = options.port or free_port()
    url = f"http://127.0.0.1:{port}"
    server = start(work, env, port)
    try:
        wait_until_up(server, url, options.start_seconds)
        print(f"SkyRL answers at {url}", flush=True)
        if options.serve:
            server.wait()
            return 1
        life = subprocess.run(["node", str(HERE / options.life), url], cwd=ROOT, timeout=options.life_seconds)
        return life.returncode
    except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        print((work / "server.log").read_text(errors="replace")[-4000:], file=sys.stderr)
        return 1
    finally:
        stop(server)


def main() -> int:
    options = arguments()
    os.nice(10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    python = install(options.venv)
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
        return run(options, python, options.work.resolve())
    with tempfile.TemporaryDirectory(prefix="skyrl-") as work:
        return run(options, python, Path(work))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
