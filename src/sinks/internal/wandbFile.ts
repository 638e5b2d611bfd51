import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { closeSync, openSync, writeSync } from 'node:fs';
// As a whole: a release of Node without crc32 must come as far as the check of its version.
import zlib from 'node:zlib';
import { namingFile } from '../../support/files/namingFile.js';

/** Fields of the messages of wandb_internal.proto that are written here. */
const RECORD = { number: 1, history: 2, summary: 3, run: 17, exit: 18, header: 21 };
const HEADER = { version: 1, producer: 1, minConsumer: 2 };
const RUN = { id: 1, project: 3, config: 4, name: 8, host: 13, startTime: 17 };
const TIME = { seconds: 1, nanos: 2 };
const ITEM = { key: 1, nestedKey: 2, json: 16 };
const HISTORY = { item: 1, step: 2, stepNumber: 1 };
const UPDATE = 1;
const EXIT = { code: 1, runtime: 2 };

/** The file's own start: its name, a magic number, version 0. */
const START = Buffer.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0x00]);
const BLOCK_BYTES = 32_768;
const HEAD_BYTES = 7;
const [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4] as const;

export interface WandbRun {
  readonly id: string;
  readonly project: string;
  readonly name: string;
  readonly host: string;
  readonly startMs: number;
  readonly config: Readonly<Record<string, unknown>>;
}

/** A run as the wandb package writes it offline: protobuf records in a log of blocks, as LevelDB has them. */
export class WandbFile {
  readonly #file: number;
  readonly #startMs: number;
  #at = START.length;
  #number = 0;

  constructor(
    private readonly path: string,
    { id, project, name, host, startMs, config }: WandbRun,
  ) {
    this.#startMs = startMs;
    this.#file = openSync(path, 'wx');
    writeSync(this.#file, START);
    const version = text(HEADER.producer, 'tinker-rx');
    version.tag(HEADER.minConsumer, WireType.LengthDelimited).string('0.70.0');
    this.#write(RECORD.header, message(HEADER.version, version));
    const time = new BinaryWriter().tag(TIME.seconds, WireType.Varint).int64(Math.floor(startMs / 1000));
    time.tag(TIME.nanos, WireType.Varint).int32(Math.floor(startMs % 1000) * 1_000_000);
    const settings = new BinaryWriter();
    for (const [key, value] of Object.entries(config)) add(settings, UPDATE, item(ITEM.key, key, value));
    const run = text(RUN.id, id).tag(RUN.project, WireType.LengthDelimited).string(project);
    run.tag(RUN.name, WireType.LengthDelimited).string(name).tag(RUN.host, WireType.LengthDelimited).string(host);
    this.#write(RECORD.run, add(add(run, RUN.config, settings), RUN.startTime, time));
  }

  /** Adds a line to the history, and makes its values the newest of the run. */
  append(atMs: number, step: number, scalars: ReadonlyMap<string, number>): void {
    const seconds = (atMs - this.#startMs) / 1000;
    const values = [...scalars, ['_timestamp', atMs / 1000], ['_runtime', seconds], ['_step', step]] as const;
    const [summary, history] = [new BinaryWriter(), new BinaryWriter()];
    for (const [name, value] of values) {
      // JSON has no other numbers.
      if (!Number.isFinite(value)) continue;
      add(summary, UPDATE, item(ITEM.nestedKey, name, value));
      add(history, HISTORY.item, item(ITEM.nestedKey, name, value));
    }
    this.#write(RECORD.summary, summary);
    const place = new BinaryWriter().tag(HISTORY.stepNumber, WireType.Varint).int64(step);
    this.#write(RECORD.history, add(history, HISTORY.step, place));
  }

  close(atMs: number, exitCode: number): void {
    const exit = new BinaryWriter().tag(EXIT.code, WireType.Varint).int32(exitCode);
    exit.tag(EXIT.runtime, WireType.Varint).int32(Math.floor((atMs - this.#startMs) / 1000));
    this.#write(RECORD.exit, exit);
    closeSync(this.#file);
  }

  #write(field: number, inner: BinaryWriter): void {
    const record = new BinaryWriter().tag(RECORD.number, WireType.Varint).int64(++this.#number);
    const data = add(record, field, inner).finish();
    let from = 0;
    do {
      const left = BLOCK_BYTES - (this.#at % BLOCK_BYTES);
      if (left < HEAD_BYTES) {
        // A head does not fit: the block ends in zeros.
        this.#put(Buffer.alloc(left));
        continue;
      }
      const length = Math.min(left - HEAD_BYTES, data.length - from);
      const isLast = from + length === data.length;
      const kind = from === 0 ? (isLast ? FULL : FIRST) : isLast ? LAST : MIDDLE;
      const body = data.subarray(from, from + length);
      const head = Buffer.alloc(HEAD_BYTES);
      head.writeUInt32LE(zlib.crc32(body, zlib.crc32(Uint8Array.of(kind))), 0);
      head.writeUInt16LE(length, 4);
      head[6] = kind;
      this.#put(Buffer.concat([head, body]));
      from += length;
    } while (from < data.length);
  }

  #put(bytes: Uint8Array): void {
    namingFile(this.path, () => writeSync(this.#file, bytes));
    this.#at += bytes.length;
  }
}

const text = (field: number, value: string): BinaryWriter =>
  new BinaryWriter().tag(field, WireType.LengthDelimited).string(value);

const add = (outer: BinaryWriter, field: number, inner: BinaryWriter): BinaryWriter =>
  outer.tag(field, WireType.LengthDelimited).bytes(inner.finish());

const message = (field: number, inner: BinaryWriter): BinaryWriter => add(new BinaryWriter(), field, inner);

const item = (field: number, name: string, value: unknown): BinaryWriter =>
  text(field, name)
    .tag(ITEM.json, WireType.LengthDelimited)
    .string(JSON.stringify(value) ?? 'null');
