import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { closeSync, openSync, writeSync } from 'node:fs';
import { crc32c } from './crc32c.js';
import { namingFile } from '../../support/files/namingFile.js';

/** Fields of TensorFlow's Event, Summary, Summary.Value and SessionLog. */
const EVENT = { wallTime: 1, step: 2, fileVersion: 3, summary: 5, sessionLog: 7 };
const SUMMARY_VALUE = 1;
const VALUE = { tag: 1, simpleValue: 2 };
const SESSION = { status: 1, start: 1 };

/** An event file of TensorBoard: records of protobuf messages, each with its length and checksums. */
export class TensorBoardFile {
  readonly #file: number;

  /** @param firstStep where the run resumes: steps of earlier files from here on are no longer shown */
  constructor(
    private readonly path: string,
    atMs: number,
    firstStep: number,
  ) {
    this.#file = openSync(path, 'wx');
    this.#write(event(atMs, undefined).tag(EVENT.fileVersion, WireType.LengthDelimited).string('brain.Event:2'));
    if (firstStep > 0) {
      const log = new BinaryWriter().tag(SESSION.status, WireType.Varint).int32(SESSION.start).finish();
      this.#write(event(atMs, firstStep).tag(EVENT.sessionLog, WireType.LengthDelimited).bytes(log));
    }
  }

  append(atMs: number, step: number, scalars: ReadonlyMap<string, number>): void {
    const summary = new BinaryWriter();
    for (const [name, value] of scalars) {
      const one = new BinaryWriter().tag(VALUE.tag, WireType.LengthDelimited).string(name);
      one.tag(VALUE.simpleValue, WireType.Bit32).float(Math.fround(value));
      summary.tag(SUMMARY_VALUE, WireType.LengthDelimited).bytes(one.finish());
    }
    this.#write(event(atMs, step).tag(EVENT.summary, WireType.LengthDelimited).bytes(summary.finish()));
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(message: BinaryWriter): void {
    const data = message.finish();
    const record = Buffer.alloc(12 + data.length + 4);
    record.writeBigUInt64LE(BigInt(data.length), 0);
    record.writeUInt32LE(masked(record.subarray(0, 8)), 8);
    record.set(data, 12);
    record.writeUInt32LE(masked(data), 12 + data.length);
    namingFile(this.path, () => writeSync(this.#file, record));
  }
}

function event(atMs: number, step: number | undefined): BinaryWriter {
  const writer = new BinaryWriter().tag(EVENT.wallTime, WireType.Bit64).double(atMs / 1000);
  return step === undefined ? writer : writer.tag(EVENT.step, WireType.Varint).int64(step);
}

/** The format's mask, since a checksum of data that holds checksums is a poor one. */
function masked(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
