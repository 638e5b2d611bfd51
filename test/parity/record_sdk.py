"""Records what the real Python SDK sends: python3 test/parity/record_sdk.py [scenario …]

Runs every scenario of record/scenarios (or the named ones) against the recording server and writes
recorded/sdk/<scenario>.json. README.md describes the format.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import time
import warnings

sys.dont_write_bytecode = True

import parity_venv  # noqa: E402

parity_venv.enter()

from record import fixture  # noqa: E402
from record.recording import SCENARIOS  # noqa: E402
from record.scenarios import load  # noqa: E402


def main(names: list[str]) -> None:
    # Deprecation notes and retries are part of the scenarios.
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    load()
    chosen = [scenario for scenario in SCENARIOS if not names or scenario.name in names]
    started = time.monotonic()
    written = []
    for scenario in chosen:
        begun = time.monotonic()
        faulthandler.dump_traceback_later(60, exit=True)
        written.append(fixture.write("sdk", scenario.name, scenario.record()))
        faulthandler.cancel_dump_traceback_later()
        print(f"{scenario.name:32} {time.monotonic() - begun:5.1f} s")
    if not names:
        for stale in set((fixture.RECORDED / "sdk").glob("*.json")) - set(written):
            stale.unlink()
    size = sum(path.stat().st_size for path in written)
    print(f"{len(written)} fixtures, {size / 1024:.0f} KiB, {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
