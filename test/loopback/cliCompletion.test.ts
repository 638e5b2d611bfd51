/**
 * Completion in real, interactive shells, typed on a pseudo-terminal. bash has to be there; zsh and fish are tried where they are
 * installed, and demanded by
 *     TINKER_RX_SHELLS=bash,zsh,fish npx vitest run test/loopback/cliCompletion.test.ts
 */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleMain } from '../unit/cli/bundledMain.js';
import { run } from '../unit/cli/terminal.js';

const SHELLS = {
  bash: { start: 'bash --norc --noprofile -i', load: 'source <(tinker-rx completion bash)' },
  zsh: { start: 'zsh -f -i', load: 'source <(tinker-rx completion zsh)' },
  fish: { start: 'fish --no-config -i', load: 'tinker-rx completion fish | source' },
} as const;
type Shell = keyof typeof SHELLS;
const isInstalled = (shell: string) => spawnSync(shell, ['--version']).status === 0;
const demanded = process.env['TINKER_RX_SHELLS']?.split(',') as Shell[] | undefined;
const tried = demanded ?? (['bash', 'zsh', 'fish'] as const).filter((shell) => shell === 'bash' || isInstalled(shell));

let folder: string;
let remove: () => void;
beforeAll(async () => {
  const bundled = await bundleMain('completion');
  ({ remove } = bundled);
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-completion-'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'questions.jsonl'), '');
  // Completes with the real command; any other command line is only shown.
  const script = `#!/bin/sh
case "$1" in
  __complete) exec '${process.execPath}' '${bundled.main}' "$@" ;;
  completion) [ $# = 2 ] && [ -z "$SHOW" ] && exec '${process.execPath}' '${bundled.main}' "$@" ;;
esac
echo "RAN[$*]"
`;
  writeFileSync(join(folder, 'bin', 'tinker-rx'), script);
  chmodSync(join(folder, 'bin', 'tinker-rx'), 0o755);
});
afterAll(() => {
  remove();
  rmSync(folder, { recursive: true });
});

/** What the command line becomes when it is typed with a Tab at its end, and run. */
function typed(shell: Shell, line: string, load: string = SHELLS[shell].load): Promise<string> {
  const { start } = SHELLS[shell];
  const child = spawn('script', ['-qec', `stty cols 200; exec ${start}`, '/dev/null'], {
    cwd: folder,
    env: { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, HOME: folder, TERM: 'xterm' },
  });
  return new Promise((resolve, reject) => {
    let shown = '';
    let sent = false;
    const limit = setTimeout(() => reject(new Error(`${shell} shows ${JSON.stringify(shown)}`)), 240_000);
    const end = (text: string) => {
      clearTimeout(limit);
      child.kill('SIGKILL');
      resolve(text);
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
      // The first one is only the typed line; its output has no quotation marks.
      if (!sent && /LOADED-3/.test(shown)) {
        sent = true;
        child.stdin.write(`${line}\t\r`);
      }
      const ran = /RAN\[(.*?)\]/.exec(shown);
      if (ran !== null) end(ran[1]!);
    });
    child.on('error', reject);
    child.stdin.write(`${load}; ${shell === 'fish' ? 'set -x SHOW 1' : 'export SHOW=1'}; echo LOADED-$(expr 1 + 2)\r`);
  });
}

describe.each(tried)('%s', (shell) => {
  it.each([
    ['tinker-rx checkpoint dow', 'checkpoint download'],
    ['tinker-rx run list --form', 'run list --format'],
    ['tinker-rx run list --format j', 'run list --format json'],
    ['tinker-rx run list --format=j', 'run list --format=json'],
    ['tinker-rx -f json ses', '-f json session'],
    ['tinker-rx completion f', 'completion fish'],
    ['tinker-rx train ques', 'train questions.jsonl'],
  ])('completes %s', async (line, expected) => {
    expect((await typed(shell, line)).trim()).toBe(expected);
  });
});

if (tried.includes('zsh')) {
  it('completes in zsh also from a file in fpath', async () => {
    const load = `mkdir -p fpath; tinker-rx completion zsh > fpath/_tinker-rx; fpath=($PWD/fpath $fpath); autoload -Uz compinit; compinit -D -u`;
    expect((await typed('zsh', 'tinker-rx checkpoint dow', load)).trim()).toBe('checkpoint download');
  });
}

it('is tried in bash at least', () => expect(tried).toContain('bash'));

describe('the script for', () => {
  it.each(['bash', 'zsh', 'fish'] as const)('%s asks the command for its words, and is whole', async (shell) => {
    const { stdout } = await run(['completion', shell]);
    expect(stdout).toContain('tinker-rx __complete -- ');
    expect(stdout).not.toContain('undefined');
    for (const [open, close] of ['()', '{}', '[]'])
      expect(stdout.split(open!).length, `${open}${close}`).toBe(stdout.split(close!).length);
    expect(stdout.replaceAll(/"[^"]*"/g, '').match(/'/g)?.length ?? 0).toSatisfy((quotes: number) => quotes % 2 === 0);
    const register = {
      bash: /^complete .* tinker-rx$/m,
      zsh: /^ {2}compdef _tinker_rx tinker-rx$/m,
      fish: /^complete -c tinker-rx /m,
    };
    expect(stdout).toMatch(register[shell]);
  });
});
