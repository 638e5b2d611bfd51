import { op, type Code, type WasmFunction } from './assembler.js';

/** How a matrix lies in memory: float32, or bf16, which is the upper half of it. */
export type Format = 'f32' | 'bf16';

const BYTES = { f32: 4, bf16: 2 } as const;
/** Four floats from the address on the stack. */
const loadFour = (format: Format, index: number): Code =>
  format === 'f32' ? op.load(16 * index) : [...op.loadHalves(8 * index), ...op.i32(16), ...op.integerShiftLeft];

/** Bytes from one row of a panel to the next: eight floats. */
const PANEL_ROW = 32;

const [FROM, ROW, COUNT, OUT] = [0, 1, 2, 3] as const;
const move = (local: number, by: Code): Code => [...op.get(local), ...by, ...op.add, ...op.set(local)];

/** `(from, row, count, out)`: four rows of a matrix, `count` elements of each, become four columns of a panel. `count` is a multiple of 4. */
function packRows(name: string, format: Format): WasmFunction {
  const [R0, V] = [4, 8] as const;
  const rows = [0, 1, 2, 3] as const;
  const pair = (a: number, b: number, lanes: readonly number[], to: number): Code => [
    ...[...op.get(V + a), ...op.get(V + b), ...op.shuffle(...lanes), ...op.set(V + to)],
  ];
  const [LOW, HIGH] = [
    [0, 4, 1, 5],
    [2, 6, 3, 7],
  ] as const;
  const [FIRST, SECOND] = [
    [0, 1, 4, 5],
    [2, 3, 6, 7],
  ] as const;
  const store = (a: number, b: number, lanes: readonly number[], at: number): Code => [
    ...[...op.get(OUT), ...op.get(V + a), ...op.get(V + b), ...op.shuffle(...lanes), ...op.store(at * PANEL_ROW)],
  ];
  const body: Code = [
    ...rows.flatMap((row) => [
      ...(row === 0 ? op.get(FROM) : [...op.get(R0 + row - 1), ...op.get(ROW), ...op.add]),
      ...op.set(R0 + row),
    ]),
    ...op.while(
      [...op.i32(0), ...op.get(COUNT), ...op.lt],
      [
        ...rows.flatMap((row) => [...op.get(R0 + row), ...loadFour(format, 0), ...op.set(V + row)]),
        ...[...pair(0, 1, LOW, 4), ...pair(2, 3, LOW, 5), ...pair(0, 1, HIGH, 6), ...pair(2, 3, HIGH, 7)],
        ...[...store(4, 5, FIRST, 0), ...store(4, 5, SECOND, 1), ...store(6, 7, FIRST, 2), ...store(6, 7, SECOND, 3)],
        ...rows.flatMap((row) => move(R0 + row, op.i32(4 * BYTES[format]))),
        ...move(OUT, op.i32(4 * PANEL_ROW)),
        ...move(COUNT, op.i32(-4)),
      ],
    ),
  ];
  return { name, parameters: ['i32', 'i32', 'i32', 'i32'], integers: 4, vectors: 8, body };
}

/** `(from, row, count, out)`: eight elements of each of `count` rows, or four, become the rows of a panel. */
function packColumns(name: string, format: Format, vectors: number): WasmFunction {
  const copy = (index: number): Code => [
    ...[...op.get(OUT), ...op.get(FROM), ...loadFour(format, index), ...op.store(16 * index)],
  ];
  const body = op.while(
    [...op.i32(0), ...op.get(COUNT), ...op.lt],
    [
      ...Array.from({ length: vectors }, (_, index) => copy(index)).flat(),
      ...move(FROM, op.get(ROW)),
      ...move(OUT, op.i32(PANEL_ROW)),
      ...move(COUNT, op.i32(-1)),
    ],
  );
  return { name, parameters: ['i32', 'i32', 'i32', 'i32'], integers: 0, vectors: 0, body };
}

/** The kernels that copy a part of a frozen matrix into a panel of float32. Addresses and strides are in bytes. */
export const panels: readonly WasmFunction[] = (['f32', 'bf16'] as const).flatMap((format) => [
  packRows(`${format}Rows`, format),
  packColumns(`${format}Columns8`, format, 2),
  packColumns(`${format}Columns4`, format, 1),
]);
