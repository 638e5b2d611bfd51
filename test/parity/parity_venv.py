"""The virtual environment of the parity scripts: made when missing, then entered.

Call `enter()` first thing in a script. It makes node_modules/.cache/parity-venv, installs `PACKAGES` from PyPI into it and starts the
script again under that Python.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "node_modules" / ".cache" / "parity-venv"
PYTHON = VENV / "bin" / "python"
# The release that the recordings and docs/parity.md are of: a newer one must not fail these tests by itself. To move to it, change the
# version here, run the `record_*.py` scripts, and follow what test/python says.
PACKAGES = ["tinker==0.36.0", "openai", "tensorboard", "wandb"]
# Written last, so that an interrupted install is not taken for a finished one.
READY = VENV / f".ready-{'-'.join(PACKAGES)}"


def enter() -> None:
    if Path(sys.prefix).resolve() == VENV.resolve():
        return
    if not READY.exists():
        VENV.parent.mkdir(parents=True, exist_ok=True)
        # Test files run side by side: the second one waits for the first one's install.
        with open(VENV.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not READY.exists():
                _install()
    os.execv(PYTHON, [str(PYTHON), *sys.argv])


def _install() -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True, stdout=sys.stderr)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "uv"], check=True, stdout=sys.stderr)
    # uv needs a tenth of pip's time. It does not read pip's configuration: where it cannot install, pip tries.
    uv = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(PYTHON)]
    if subprocess.run([*uv, *PACKAGES], stdout=sys.stderr).returncode != 0:
        subprocess.run([*pip, *PACKAGES], check=True, stdout=sys.stderr)
    READY.touch()
