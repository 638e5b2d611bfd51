// Draws docs/marbles/*.svg: every operator is run in virtual time and what it really did is drawn.
//   node --import tsx scripts/draw-marbles.mjs            writes them
//   node --import tsx scripts/draw-marbles.mjs --check    writes nothing; names those that would change and ends with 1
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { pictures } from './marbles/pictures.mjs';
import { record } from './marbles/record.mjs';
import { toSvg } from './marbles/svg.mjs';

const folder = new URL('../docs/marbles/', import.meta.url);
const check = process.argv.includes('--check');
const drawn = new Map(pictures.map((picture) => [`${picture.name}.svg`, toSvg(picture, record(picture))]));

mkdirSync(folder, { recursive: true });
const found = new Map(
  readdirSync(folder)
    .filter((file) => file.endsWith('.svg'))
    .map((file) => [file, readFileSync(new URL(file, folder), 'utf8')]),
);
const changed = [...new Set([...drawn.keys(), ...found.keys()])].filter((file) => drawn.get(file) !== found.get(file));

if (check) {
  for (const file of changed) console.error(`docs/marbles/${file} is not what the script draws`);
  process.exitCode = changed.length === 0 ? 0 : 1;
} else {
  for (const file of changed) {
    if (drawn.has(file)) writeFileSync(new URL(file, folder), drawn.get(file));
    else rmSync(new URL(file, folder));
  }
  console.log(`${drawn.size} pictures, ${changed.length} changed`);
}
