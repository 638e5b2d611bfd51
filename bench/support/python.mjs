// The Python that has the real SDK, where there is one: PYTHON=<path>, or the one the parity tests use.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const parity = fileURLToPath(new URL('../../node_modules/.cache/parity-venv/bin/python', import.meta.url));
export const python = process.env.PYTHON ?? (existsSync(parity) ? parity : undefined);
export const notMeasured = (what) => ({
  what,
  skipped: 'no Python with tinker (`python3 test/parity/list_sdk.py` installs it)',
});
