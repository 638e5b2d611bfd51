/**
 * Makes the pages of the dashboard, the live one and the comparison of evaluations: each is one HTML file with its script (uPlot and RxJS included) and its style in it, so that
 * whoever installs the package needs no build step, no further files and no network. Run by `npm run build`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = join(root, 'src/dashboard/page');
const uplot = dirname(createRequire(import.meta.url).resolve('uplot'));

const notice = `<!--
This page contains RxJS (Apache License 2.0, https://github.com/ReactiveX/rxjs) and uPlot:

${readFileSync(join(uplot, '../LICENSE'), 'utf8').trim()}
-->`;
const style = readFileSync(join(page, 'style.css'), 'utf8');

/** Writes a page with its script and its style in it. */
async function build(name, { html: source, script: input, style: css, notice: head }) {
  const bundle = await rolldown({ input: join(page, input), platform: 'browser', tsconfig: false });
  const { output } = await bundle.generate({ format: 'iife', minify: true });
  await bundle.close();
  // In a script element, only its own end tag could end it.
  const script = output[0].code.replaceAll('</script', '<\\/script');
  const html = readFileSync(join(page, source), 'utf8')
    .replace('<!doctype html>', (doctype) => (head === undefined ? doctype : `${doctype}\n${head}`))
    // A function, since `$` means something in a replacement text.
    .replace(/\s*\/\*style\*\/\s*/, () => css)
    .replace(/\s*\/\*script\*\/\s*/, () => script);
  const target = join(root, 'dist/dashboard', name);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, html);
  console.log(`dist/dashboard/${name}: ${Math.round(html.length / 1024)} KiB`);
}

await build('page.html', {
  ...{ html: 'page.html', script: 'main.ts', notice },
  style: `${readFileSync(join(uplot, 'uPlot.min.css'), 'utf8')}\n${style}`,
});
await build('compare.html', {
  ...{ html: 'compare/compare.html', script: 'compare/main.ts' },
  style: `${style}\n${readFileSync(join(page, 'compare/compare.css'), 'utf8')}`,
});
