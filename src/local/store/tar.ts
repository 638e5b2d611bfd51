const BLOCK = 512;

/** Files as a tar archive (ustar), all in its top folder. */
export function tar(files: ReadonlyMap<string, Uint8Array>, modifiedMs: number): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [name, content] of files) {
    parts.push(header(name, content.length, modifiedMs), content, new Uint8Array(padding(content.length)));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return Buffer.concat(parts);
}

const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

function header(name: string, size: number, modifiedMs: number): Uint8Array {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`file name too long for a tar archive: ${name}`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number) =>
    block.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
  block.write(name, 0, 'utf8');
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(modifiedMs / 1000), 136, 12);
  // The checksum is taken as if its own field were spaces.
  block.fill(' ', 148, 156);
  block.write('0', 156, 'latin1');
  block.write('ustar\0' + '00', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
