import { describe, expect, it } from 'vitest';
import {
  decodeSafetensors,
  decodeState,
  decodeTokens,
  encodeSafetensors,
  encodeState,
  encodeText,
  EngineUserError,
  exportPeft,
  SPECIAL,
} from '../../../src/local/engine/index.js';
import { busyState, createCore, SHAPE } from './engineModel.js';

const TENSORS = {
  'a.weight': { shape: [2, 3], data: Float32Array.of(1, -2.5, 0, 1e-30, 3.3, Infinity) },
  b: { shape: [], data: Float32Array.of(7) },
  empty: { shape: [0, 4], data: new Float32Array(0) },
};

/** A file of eight bytes of content behind any header. */
function withHeader(header: unknown): Uint8Array {
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeUInt32LE(text.length);
  return Buffer.concat([size, text, Buffer.alloc(8)]);
}

describe('safetensors', () => {
  it('gives float32 back bit for bit, with metadata', () => {
    const file = encodeSafetensors(TENSORS, { metadata: { note: 'größer' } });
    expect(decodeSafetensors(file)).toStrictEqual({ tensors: TENSORS, metadata: { note: 'größer' } });
    // A view that does not start at the beginning of its buffer.
    const shifted = new Uint8Array(file.length + 3);
    shifted.set(file, 3);
    expect(decodeSafetensors(shifted.subarray(3)).tensors).toStrictEqual(TENSORS);
  });

  it('lays the file out as the format says: length, JSON padded to 8 bytes, data', () => {
    const file = encodeSafetensors({ x: { shape: [1], data: Float32Array.of(1.5) } });
    const size = Number(new DataView(file.buffer).getBigUint64(0, true));
    expect(size % 8).toBe(0);
    const header = new TextDecoder().decode(file.subarray(8, 8 + size));
    expect(JSON.parse(header)).toEqual({ x: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } });
    expect([...file.subarray(8 + size)]).toEqual([0, 0, 0xc0, 0x3f]);
  });

  it('rounds to bfloat16, ties to even', () => {
    const values = Float32Array.of(1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -20, -3.140625, NaN, -Infinity);
    const { tensors } = decodeSafetensors(encodeSafetensors({ x: { shape: [7], data: values } }, { dtype: 'BF16' }));
    expect([...tensors['x']!.data]).toEqual([1, 1, 1 + 2 ** -6, 1 + 2 ** -7, -3.140625, NaN, -Infinity]);
  });

  it.each([
    ['shorter than its header', (file: Uint8Array) => file.subarray(0, 4)],
    ['shorter than its header', (file: Uint8Array) => file.subarray(0, 40)],
    ['does not fit its place', (file: Uint8Array) => file.subarray(0, file.length - 1)],
    ['header is not JSON', (file: Uint8Array) => file.map((byte, index) => (index === 8 ? 0x21 : byte))],
  ])('refuses a file that is %s', (message, damage) => {
    expect(() => decodeSafetensors(damage(encodeSafetensors(TENSORS)))).toThrow(message);
  });
});

describe('a saved state', () => {
  const core = createCore();
  core.createModel('m', SHAPE.name, { rank: 3, trainMlp: false });
  const state = core.exportState('m', true);

  it('is read back as it was, with and without its optimizer', () => {
    expect(decodeState(encodeState(state))).toStrictEqual(state);
    const { optimizer: _, ...bare } = state;
    expect(decodeState(encodeState(bare))).toStrictEqual(bare);
  });

  it('is not confused with other files', () => {
    expect(() => decodeState(encodeSafetensors(TENSORS))).toThrow('not a training state');
    expect(() => decodeState(encodeState(state).subarray(0, 100))).toThrow('cannot be read');
  });

  it('with a header that lies is a user error', () => {
    const metadata = { format: 'tinker-rx-state', base_model: 'b', lora: '{"rank":2}', step: '1' };
    const place = { dtype: 'F32', shape: [2], data_offsets: [0, 8] };
    expect(decodeState(withHeader({ __metadata__: metadata, a: place }))).toMatchObject({ step: 1, lora: { rank: 2 } });
    for (const header of [
      ...[null, [], { __metadata__: null }, { __metadata__: metadata, a: null }],
      ...[{ __metadata__: { ...metadata, lora: '' } }, { __metadata__: { ...metadata, lora: [] } }],
      ...[{ __metadata__: { ...metadata, step: 'x' } }, { __metadata__: { ...metadata, lora: 'null' } }],
      ...[
        { ...place, shape: '2' },
        { ...place, shape: [-2] },
        { ...place, data_offsets: 8 },
      ].map((a) => ({
        __metadata__: metadata,
        a,
      })),
    ]) {
      expect(() => decodeState(withHeader(header)), JSON.stringify(header)).toThrow(EngineUserError);
    }
  });

  it('that claims the same bytes for many tensors took memory for each of them', () => {
    const place = { dtype: 'F32', shape: [2], data_offsets: [0, 8] };
    expect(() => decodeSafetensors(withHeader({ a: place, b: place }))).toThrow('"b" overlaps another tensor');
  });

  it('is exported in the PEFT layout', () => {
    const busy = busyState({ rank: 3, trainAttn: false }, 1);
    const files = exportPeft(busy);
    expect(JSON.parse(new TextDecoder().decode(files['adapter_config.json']))).toMatchObject({
      peft_type: 'LORA',
      task_type: 'CAUSAL_LM',
      base_model_name_or_path: SHAPE.name,
      r: 3,
      lora_alpha: 32,
      target_modules: ['gate_proj', 'up_proj', 'down_proj', 'lm_head'],
    });
    const { tensors } = decodeSafetensors(files['adapter_model.safetensors']);
    expect(tensors).toStrictEqual(busy.weights);
    expect(tensors['base_model.model.model.layers.1.mlp.down_proj.lora_A.weight']!.shape).toEqual([3, SHAPE.hidden]);
    expect(tensors['base_model.model.lm_head.lora_B.weight']!.shape).toEqual([264, 3]);
  });
});

describe('the vocabulary', () => {
  it('encodes text as its bytes, and never as a special token', () => {
    const text = 'Grüße <|end|> 🙂';
    expect([...encodeText(text)]).toEqual([...Buffer.from(text)]);
    expect(decodeTokens(encodeText(text))).toBe(text);
  });

  it('leaves special tokens out, or writes their names', () => {
    const tokens = [SPECIAL.user, ...encodeText('é'), SPECIAL.end, 0xff];
    expect(decodeTokens(tokens)).toBe('é\ufffd');
    expect(decodeTokens(tokens, { special: true })).toBe('<|user|>é<|end|>\ufffd');
  });
});
