import { describe, expect, it } from 'vitest';
import { Heap } from '../../../src/local/engine/numeric/heap.js';
import { createRandom } from '../../../src/local/engine/numeric/random.js';

const random = createRandom(3);
const noise = (size: number, scale = 1) => Float32Array.from({ length: size }, () => scale * random.normal());

describe('gemm', () => {
  it.each([
    [1, 4, 1],
    [1, 8, 7],
    [3, 12, 5],
    [4, 16, 8],
    [5, 20, 33],
    [9, 264, 64],
    [0, 8, 3],
    [2, 4, 0],
  ])('multiplies %i × %i over %i, plain, added, and with A transposed', (m, n, k) => {
    const heap = new Heap();
    const [a, b, c] = [noise(m * k), noise(k * n), noise(m * n)];
    const expected = Float64Array.from({ length: m * n }, (_, i) => {
      let sum = 0;
      for (let j = 0; j < k; j++) sum += a[Math.floor(i / n) * k + j]! * b[j * n + (i % n)]!;
      return sum;
    });
    const aTransposed = Float32Array.from({ length: m * k }, (_, i) => a[(i % m) * k + Math.floor(i / m)]!);
    const [atA, atT, atB, atC] = [heap.store(a), heap.store(aTransposed), heap.store(b), heap.store(c)];
    const result = () => heap.floats.slice(atC, atC + m * n);
    const close = (base: ArrayLike<number>) =>
      result().forEach((value, i) => expect(Math.abs(value - base[i]! - expected[i]!)).toBeLessThan(1e-5 * (k + 1)));

    heap.kernels.gemm(m, n, k, atA, k, 1, atB, n, atC, n, true);
    close(c);
    heap.kernels.gemm(m, n, k, atA, k, 1, atB, n, atC, n, false);
    close(new Float32Array(m * n));
    const plain = result();
    heap.kernels.gemm(m, n, k, atT, 1, m, atB, n, atC, n, false);
    expect(result()).toStrictEqual(plain);
  });

  it.each([
    [1, 4, 4],
    [1, 264, 64],
    [5, 20, 36],
    [9, 96, 96],
    [64, 160, 64],
  ])('gives the same bits for a frozen matrix, either way, in float32 and bf16: %i × %i over %i', (m, n, k) => {
    const heap = new Heap();
    // Halves of a few digits are the same numbers in both formats.
    const weights = noise(n * k).map((value) => Math.round(8 * value) / 8);
    const halves = new Uint16Array(weights.buffer).filter((_, i) => i % 2 === 1);
    const [f32, bf16] = [heap.store(weights), heap.alloc(n * k)];
    new Uint16Array(heap.floats.buffer).set(halves, 2 * bf16);
    const transposed = heap.store(
      Float32Array.from({ length: k * n }, (_, i) => weights[(i % n) * k + Math.floor(i / n)]!),
    );
    const [x, y] = [heap.store(noise(m * k)), heap.store(noise(m * n))];
    const [plain, packed] = [heap.alloc(m * Math.max(n, k)), heap.alloc(m * Math.max(n, k))];
    const result = (at: number, size: number) => heap.floats.slice(at, at + size);
    for (const [matrix, half] of [
      [f32, 0],
      [bf16, 1],
    ] as const) {
      heap.kernels.gemm(m, n, k, x, k, 1, transposed, n, plain, n, false);
      const forward = { count: Math.ceil(n / 8), scratch: 8 * k };
      heap.run('forward', forward, m, k, n, x, matrix, half, 0, -1, packed, n, 0);
      expect(result(packed, m * n)).toStrictEqual(result(plain, m * n));
      heap.kernels.gemm(m, k, n, y, n, 1, f32, k, plain, k, false);
      const backward = { count: Math.ceil(k / 8), scratch: 8 * n };
      heap.run('backward', backward, m, k, n, y, n, matrix, half, 0, packed, 0);
      expect(result(packed, m * k)).toStrictEqual(result(plain, m * k));
    }
  });

  it('gives a row the same bits whatever rows are beside it', () => {
    const heap = new Heap();
    const [m, n, k] = [11, 24, 50];
    const [a, b, c, one] = [heap.store(noise(m * k)), heap.store(noise(k * n)), heap.alloc(m * n), heap.alloc(n)];
    heap.kernels.gemm(m, n, k, a, k, 1, b, n, c, n, false);
    for (let row = 0; row < m; row++) {
      heap.kernels.gemm(1, n, k, a + row * k, k, 1, b, n, one, n, false);
      expect(heap.floats.slice(one, one + n)).toStrictEqual(heap.floats.slice(c + row * n, c + (row + 1) * n));
    }
  });
});

describe('exponentials', () => {
  it('are good to about one unit in the last place over the whole range', () => {
    const heap = new Heap();
    const values = Float32Array.from({ length: 40_000 }, (_, i) => -87.2 + (175.4 * i) / 40_000);
    const at = heap.store(values);
    heap.kernels.scaledExponential(at, values.length, 0, 1);
    let worst = 0;
    values.forEach((value, i) => (worst = Math.max(worst, Math.abs(heap.floats[at + i]! / Math.exp(value) - 1))));
    expect(worst).toBeLessThan(2 ** -22);
  });

  it('are 0 far below, and keep what is not a number', () => {
    const heap = new Heap();
    const at = heap.store(Float32Array.of(-Infinity, -1000, NaN, 0));
    heap.kernels.scaledExponential(at, 4, 0, 2);
    expect([...heap.floats.slice(at, at + 4)]).toEqual([0, 0, NaN, 2]);
  });

  it('make softmax and log Σ exp', () => {
    const heap = new Heap();
    const values = noise(12, 5);
    values[11] = -Infinity;
    const at = heap.store(values);
    const weights = Array.from(values, (value) => Math.exp(0.5 * value));
    const total = weights.reduce((a, b) => a + b, 0);
    expect(heap.logSumExp(1, at, 12)[0]).toBeCloseTo(
      Math.log(values.reduce((sum, value) => sum + Math.exp(value), 0)),
      5,
    );
    heap.kernels.softmax(at, 12, 0.5);
    weights.forEach((weight, i) => expect(Math.abs(heap.floats[at + i]! - weight / total)).toBeLessThan(1e-7));
    expect(heap.floats[at + 11]).toBe(0);
  });

  it('make the gated unit and its gradient', () => {
    const heap = new Heap();
    const [g, u, d] = [noise(8, 3), noise(8), noise(8)];
    const [atG, atU, atD, out] = [heap.store(g), heap.store(u), heap.store(d), heap.alloc(8)];
    const gated = (gate: number, up: number) => (gate / (1 + Math.exp(-gate))) * up;
    heap.kernels.swiglu(atG, atU, out, 8);
    g.forEach((gate, i) => expect(heap.floats[out + i]).toBeCloseTo(gated(gate, u[i]!), 5));
    heap.kernels.swigluBackward(atG, atU, atD, 8);
    const step = 1e-5;
    g.forEach((gate, i) => {
      const slope = (gated(gate + step, u[i]!) - gated(gate - step, u[i]!)) / (2 * step);
      expect(heap.floats[atG + i]).toBeCloseTo(slope * d[i]!, 4);
      expect(heap.floats[atU + i]).toBeCloseTo(gated(gate, 1) * d[i]!, 5);
    });
  });
});

describe('Heap', () => {
  it('hands freed blocks out again and keeps what others hold', () => {
    const heap = new Heap();
    const kept = heap.store(Float32Array.of(1, 2, 3));
    const first = heap.alloc(1000);
    heap.free(first);
    expect(heap.alloc(700)).toBe(first);
    const grown = heap.alloc(1_000_000);
    expect(heap.floats.length).toBeGreaterThanOrEqual(grown + 1_000_000);
    expect([...heap.floats.slice(kept, kept + 3)]).toEqual([1, 2, 3]);
    expect(() => heap.free(5)).toThrow('no block at 5');
  });

  it('gives scratch back to the mark, whatever sizes were taken', () => {
    const heap = new Heap();
    const use = () => {
      const mark = heap.mark();
      const blocks = [10, 300_000, 5, 1_000_000, 7].map((size) => [heap.scratch(size), size] as const);
      blocks.sort(([a], [b]) => a - b);
      blocks.slice(1).forEach(([start], i) => expect(start).toBeGreaterThanOrEqual(blocks[i]![0] + blocks[i]![1]));
      heap.release(mark);
    };
    use();
    const { bytes } = heap;
    for (let round = 0; round < 20; round++) use();
    expect(heap.bytes).toBe(bytes);
  });
});

describe('createRandom', () => {
  it('gives independent streams that repeat', () => {
    const draw = (seed: number, stream: number) => {
      const source = createRandom(seed, stream);
      return Array.from({ length: 4 }, () => source.uniform());
    };
    expect(draw(1, 2)).toEqual(draw(1, 2));
    const all = [0, 1, 2, -1, 2 ** 32, 2 ** 40 + 1].flatMap((seed) =>
      [0, 1, 2].map((stream) => draw(seed, stream).join()),
    );
    expect(new Set(all).size).toBe(18);
  });

  it('is uniform and normal', () => {
    const source = createRandom(9);
    const [bins, size] = [new Array<number>(10).fill(0), 50_000];
    let [sum, squares] = [0, 0];
    for (let i = 0; i < size; i++) {
      bins[Math.floor(10 * source.uniform())]!++;
      const value = source.normal();
      sum += value;
      squares += value * value;
    }
    bins.forEach((count) => expect(Math.abs(count - size / 10)).toBeLessThan(5 * Math.sqrt(size / 10)));
    expect(Math.abs(sum / size)).toBeLessThan(0.02);
    expect(Math.abs(squares / size - 1)).toBeLessThan(0.03);
  });
});
