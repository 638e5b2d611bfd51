/**
 * Makes the page of the dashboard: one HTML file with its script (uPlot and RxJS included) and its style in it, so that
 * whoever installs the package needs no build step, no further files and no network. Run by `npm run build`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = join(root, 'src/dashboard/page');
const target = join(root, 'dist/dashboard/page.html');
const uplot = dirname(createRequire(import.meta.url).resolve('uplot'));

const bundle = await rolldown({
  input: join(page, 'main.ts'),
  platform: 'browser',
  tsconfig: false,
});
const { output } = await bundle.generate({ format: 'iife', minify: true });
await bundle.close();

// In a script element, only its own end tag could end it.
const script = output[0].code.replaceAll('</script', '<\\/script');
const style = `${readFileSync(join(uplot, 'uPlot.min.css'), 'utf8')}\n${readFileSync(join(page, 'style.css'), 'utf8')}`;
const notice = `<!--
This page contains RxJS (Apache License 2.0, https://github.com/ReactiveX/rxjs) and uPlot:

${readFileSync(join(uplot, '../LICENSE'), 'utf8').trim()}
-->`;
const html = readFileSync(join(page, 'page.html'), 'utf8')
  .replace('<!doctype html>', (doctype) => `${doctype}\n${notice}`)
  // A function, since `$` means something in a replacement text.
  .replace(/\s*\/\*style\*\/\s*/, () => style)
  .replace(/\s*\/\*script\*\/\s*/, () => script);
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, html);
console.log(`dist/dashboard/page.html: ${Math.round(html.length / 1024)} KiB`);
