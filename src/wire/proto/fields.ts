import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** Reads a message field by field; unknown fields are skipped, so a newer server's message still decodes. */
export function readFields(
  bytes: Uint8Array,
  onField: (field: number, reader: BinaryReader, wireType: WireType) => boolean,
): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (!onField(field, reader, wireType)) reader.skip(wireType, field);
  }
}

/** A `repeated int64`, packed or one by one. */
export function readInt64s(reader: BinaryReader, wireType: WireType, into: number[]): void {
  if (wireType !== WireType.LengthDelimited) {
    into.push(Number(reader.int64()));
    return;
  }
  for (const end = reader.uint32() + reader.pos; reader.pos < end;) into.push(Number(reader.int64()));
}

/** The key and the raw value of a map entry whose value is a message. */
export function readEntry(bytes: Uint8Array): { key: string; value: Uint8Array } {
  const entry: { key: string; value: Uint8Array } = { key: '', value: new Uint8Array() };
  readFields(bytes, (field, reader) => {
    if (field === 1) entry.key = reader.string();
    else if (field === 2) entry.value = reader.bytes();
    else return false;
    return true;
  });
  return entry;
}

/** An entry of a `map<string, double>`. */
export function readDoubleEntry(bytes: Uint8Array): [string, number] {
  let key = '';
  let value = 0;
  readFields(bytes, (field, reader) => {
    if (field === 1) key = reader.string();
    else if (field === 2) value = reader.double();
    else return false;
    return true;
  });
  return [key, value];
}
