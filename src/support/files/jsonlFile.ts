import { closeSync, fstatSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { jsonLine } from './jsonLine.js';
import { namingFile } from './namingFile.js';

const NEWLINE = 0x0a;
const BLOCK_BYTES = 64 * 1024;
/** A file whose last line is torn, and which did not grow for so long, has no writer. */
const STILL_MS = 50;

/**
 * A JSONL file open for appending. Lines are written whole and at once, so that what was appended survives the process;
 * what a crash left half written is taken off when the file is opened.
 */
export class JsonlFile {
  #descriptor: number | undefined;

  constructor(readonly path: string) {
    mkdirSync(dirname(path), { recursive: true });
    this.#descriptor = openSync(path, 'a+');
    this.#repair(this.#descriptor);
  }

  append(value: unknown): void {
    const bytes = Buffer.from(jsonLine(value));
    namingFile(this.path, () => {
      for (let written = 0; written < bytes.length;) {
        written += writeSync(this.#open(), bytes, written, bytes.length - written);
      }
    });
  }

  sync(): void {
    namingFile(this.path, () => fsyncSync(this.#open()));
  }

  /** Brings what was written to the disk and closes. Closing again does nothing. */
  close(): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    this.#descriptor = undefined;
    try {
      namingFile(this.path, () => fsyncSync(descriptor));
    } finally {
      closeSync(descriptor);
    }
  }

  #open(): number {
    if (this.#descriptor === undefined) throw new Error(`${this.path} is closed`);
    return this.#descriptor;
  }

  /** Ends a last line that is whole but for its newline; takes off one that is torn. */
  #repair(descriptor: number): void {
    const { size } = fstatSync(descriptor);
    const start = lastLineStart(descriptor, size);
    if (start === size) return;
    // Another process may be writing this line: then the file grows.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STILL_MS);
    if (fstatSync(descriptor).size !== size) return this.#repair(descriptor);
    const rest = Buffer.alloc(size - start);
    readSync(descriptor, rest, 0, rest.length, start);
    if (isJson(rest.toString('utf8'))) writeSync(descriptor, '\n');
    else ftruncateSync(descriptor, start);
  }
}

/** Where the last line begins that has no newline; the file's size if there is none such. */
function lastLineStart(descriptor: number, size: number): number {
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - BLOCK_BYTES);
    readSync(descriptor, block, 0, end - start, start);
    const place = block.subarray(0, end - start).lastIndexOf(NEWLINE);
    if (place >= 0) return start + place + 1;
    end = start;
  }
  return 0;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    // A number may be the first digits of a longer one.
    return /[}\]"el]\s*$/.test(text);
  } catch {
    return false;
  }
}
