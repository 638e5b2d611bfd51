import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { root } from '../unit/docs/snippets.js';
import { patternOf, shapeOf } from './runSnippet.js';

beforeAll(() => {
  if (!existsSync(`${root}dist/index.js`))
    throw new Error('the program runs on the built package: `npm run build` first');
});

it('a GRPO run is one page away from the README', () => {
  expect(readFileSync(`${root}README.md`, 'utf8')).toContain('](docs/rl.md)');
});

it('a program on the command line can start threads too: the embedded service, a pool of tokenizers', async () => {
  const program = `import { LocalTinker } from 'tinker-rx/local';
    import { loadTokenizer, TokenizerPool } from 'tinker-rx/chat';
    const local = await LocalTinker.start();
    const pool = new TokenizerPool(await loadTokenizer(local.baseModels[0]));
    console.log(local.baseModels.join(), (await pool.encodeAll(['a'])).join());
    await pool.close();
    await local.close();`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: root });
  expect(stdout).toBe('tinker-rx/tiny,tinker-rx/small 97\n');
});

describe('the shape of an output', () => {
  it('leaves out numbers, ids and tokens', () => {
    const text =
      'step 3: 0.25 http://127.0.0.1:80/?token=a-b_c tinker://07b9225c-5075-497a-abbb-03885795180e:train:0/weights/s';
    expect(shapeOf(text)).toBe('step #: # http://#.#:#/?token=<token> tinker://<id>:train:#/weights/s');
  });

  it('is compared line by line, with … for what is left out', () => {
    const shown = 'step 1: 4.0\n…\nstep 9: 0.1\n"It is …"';
    expect(shapeOf('step 1: 3\nstep 2: 2\nstep 9: 1\n"It is Monday"')).toMatch(patternOf(shown));
    expect(shapeOf('step 1: 3\nstep 9: 1\n"It is Monday"')).toMatch(patternOf(shown));
    expect(shapeOf('step 1: 3\nstep 2: 2\nstep 9: 1\n"Monday"')).not.toMatch(patternOf(shown));
    expect(shapeOf('step 1: 3\nstep 9: 1\n"It is Monday"\nmore')).not.toMatch(patternOf(shown));
  });
});
