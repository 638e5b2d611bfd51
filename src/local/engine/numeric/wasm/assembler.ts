/**
 * Just enough of a WebAssembly assembler for the engine's kernels: one imported memory, exported functions without
 * results, i32 and f32 parameters, i32 and v128 locals. Kernels are assembled at start-up (well under a millisecond) instead of being shipped as a binary blob,
 * so that what runs can be read here.
 */

/** Code under construction: a flat list of bytes. */
export type Code = readonly number[];

const unsigned = (value: number): number[] => {
  const bytes: number[] = [];
  do {
    const low = value & 0x7f;
    value >>>= 7;
    bytes.push(value === 0 ? low : low | 0x80);
  } while (value !== 0);
  return bytes;
};

const signed = (value: number): number[] => {
  const bytes: number[] = [];
  for (;;) {
    const low = value & 0x7f;
    value >>= 7;
    const done = (value === 0 && (low & 0x40) === 0) || (value === -1 && (low & 0x40) !== 0);
    bytes.push(done ? low : low | 0x80);
    if (done) return bytes;
  }
};

const text = (value: string): number[] => [...unsigned(value.length), ...new TextEncoder().encode(value)];
const simd = (opcode: number): number[] => [0xfd, ...unsigned(opcode)];
const EMPTY_BLOCK = 0x40;
/** A memory that threads share, with a maximum. */
const SHARED = 0x03;
/** What 32-bit addresses reach: 4 GiB. */
export const MAX_PAGES = 65_536;

/** Instructions, each as the bytes that encode it. Memory operands take a byte offset and assume 4-byte alignment. */
export const op = {
  get: (local: number): Code => [0x20, ...unsigned(local)],
  set: (local: number): Code => [0x21, ...unsigned(local)],
  i32: (value: number): Code => [0x41, ...signed(value)],
  add: [0x6a] as Code,
  sub: [0x6b] as Code,
  mul: [0x6c] as Code,
  /** Signed a ≤ b. */
  le: [0x4c] as Code,
  /** Signed a < b. */
  lt: [0x48] as Code,
  load: (offset: number): Code => [...simd(0x00), 2, ...unsigned(offset)],
  store: (offset: number): Code => [...simd(0x0b), 2, ...unsigned(offset)],
  /** Four 16-bit integers, widened without sign. */
  loadHalves: (offset: number): Code => [...simd(0x04), 1, ...unsigned(offset)],
  loadSplat: (offset: number): Code => [...simd(0x09), 2, ...unsigned(offset)],
  zero: [...simd(0x0c), ...new Array<number>(16).fill(0)] as Code,
  /** Four times the same float. */
  constant: (value: number): Code => {
    const bytes = new Uint8Array(Float32Array.of(value, value, value, value).buffer);
    return [...simd(0x0c), ...bytes];
  },
  splat: simd(0x13) as Code,
  lane: (index: number): Code => [...simd(0x1f), index],
  vectorAdd: simd(0xe4) as Code,
  vectorSub: simd(0xe5) as Code,
  vectorMul: simd(0xe6) as Code,
  vectorDiv: simd(0xe7) as Code,
  vectorMin: simd(0xe8) as Code,
  vectorMax: simd(0xe9) as Code,
  vectorNearest: simd(0x6a) as Code,
  /** All ones in a lane where a < b. */
  vectorLess: simd(0x43) as Code,
  /** a where b has no ones. */
  vectorAndNot: simd(0x4f) as Code,
  /** To integers, saturating. */
  vectorToInteger: simd(0xf8) as Code,
  integerAdd: simd(0xae) as Code,
  /** Lanes of two vectors in a new order: 0 to 3 of the first, 4 to 7 of the second. */
  shuffle: (...lanes: readonly number[]): Code => [
    ...simd(0x0d),
    ...lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)),
  ],
  /** a · b + c, rounded once where the processor can. Relaxed SIMD: Node 22 and later. */
  vectorMulAdd: simd(0x105) as Code,
  integerShiftLeft: simd(0xab) as Code,
  floatAdd: [0x92] as Code,
  floatMax: [0x97] as Code,
  floatStore: (offset: number): Code => [0x38, 2, ...unsigned(offset)],
  if: (body: Code): Code => [0x04, EMPTY_BLOCK, ...body, 0x0b],
  /** Runs `body` as long as `condition` leaves non-zero on the stack. */
  while: (condition: Code, body: Code): Code => [
    ...[0x02, EMPTY_BLOCK, 0x03, EMPTY_BLOCK],
    ...condition,
    ...[0x45, 0x0d, 1],
    ...body,
    ...[0x0c, 0, 0x0b, 0x0b],
  ],
} as const;

/** A function without a result. Locals are numbered parameters first, then i32, then v128. */
export interface WasmFunction {
  readonly name: string;
  readonly parameters: readonly ('i32' | 'f32')[];
  readonly integers: number;
  readonly vectors: number;
  readonly body: Code;
}

/** Encodes a module that imports memory `env.memory` and exports the functions given. */
export function assemble(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const TYPES = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const;
  const vector = (items: readonly number[][]): number[] => [...unsigned(items.length), ...items.flat()];
  const section = (id: number, content: number[]): number[] => [id, ...unsigned(content.length), ...content];
  const bodies = functions.map(({ integers, vectors, body }) => {
    const locals = vector([
      [...unsigned(integers), TYPES.i32],
      [...unsigned(vectors), TYPES.v128],
    ]);
    const code = [...locals, ...body, 0x0b];
    return [...unsigned(code.length), ...code];
  });
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, vector(functions.map((f) => [0x60, ...vector(f.parameters.map((type) => [TYPES[type]])), 0]))),
    ...section(2, vector([[...text('env'), ...text('memory'), 0x02, SHARED, 1, ...unsigned(MAX_PAGES)]])),
    ...section(3, vector(functions.map((_, index) => unsigned(index)))),
    ...section(7, vector(functions.map((f, index) => [...text(f.name), 0x00, ...unsigned(index)]))),
    ...section(10, vector(bodies)),
  ]);
}
