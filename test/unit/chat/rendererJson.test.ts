import { describe, expect, it } from 'vitest';
import { parseJson, pythonFloat, pythonJson, sortKeys } from '../../../src/chat/renderers/tools/pythonJson.js';

/**
 * Text, then what Python 3.11 makes of it: json.dumps(json.loads(text)), the same with ensure_ascii=False, and with
 * separators=(',', ':'), sort_keys=True.
 */
const RECORDED: readonly [text: string, plain: string, unicode: string, sorted: string][] = [
  [
    '{"a": 1.0, "b": [1, 2.50, -0.0, 1e5, 1E-7, 123456789012345678901234567890], "\u00e9\u5317\ud83d\udc4b": "\\u00e9\\n\\t\\"\\\\ \\u2028/"}',
    '{"a": 1.0, "b": [1, 2.5, -0.0, 100000.0, 1e-07, 123456789012345678901234567890], "\\u00e9\\u5317\\ud83d\\udc4b": "\\u00e9\\n\\t\\"\\\\ \\u2028/"}',
    '{"a": 1.0, "b": [1, 2.5, -0.0, 100000.0, 1e-07, 123456789012345678901234567890], "\u00e9\u5317\ud83d\udc4b": "\u00e9\\n\\t\\"\\\\ \u2028/"}',
    '{"a":1.0,"b":[1,2.5,-0.0,100000.0,1e-07,123456789012345678901234567890],"\\u00e9\\u5317\\ud83d\\udc4b":"\\u00e9\\n\\t\\"\\\\ \\u2028/"}',
  ],
  [
    '{"z": {}, "y": [], "10": true, "2": null}',
    '{"z": {}, "y": [], "10": true, "2": null}',
    '{"z": {}, "y": [], "10": true, "2": null}',
    '{"10":true,"2":null,"y":[],"z":{}}',
  ],
  ['1e16', '1e+16', '1e+16', '1e+16'],
  ['1e15', '1000000000000000.0', '1000000000000000.0', '1000000000000000.0'],
  ['0.0001', '0.0001', '0.0001', '0.0001'],
  ['0.00001', '1e-05', '1e-05', '1e-05'],
  ['1.5e300', '1.5e+300', '1.5e+300', '1.5e+300'],
  ['"\\u007f\\u0000\\b\\f"', '"\\u007f\\u0000\\b\\f"', '"\u007f\\u0000\\b\\f"', '"\\u007f\\u0000\\b\\f"'],
];

describe('JSON as Python writes it', () => {
  it.each(RECORDED)('%s', (text, plain, unicode, sorted) => {
    const value = parseJson(text);
    expect(pythonJson(value)).toBe(plain);
    expect(pythonJson(value, { ensureAscii: false })).toBe(unicode);
    expect(pythonJson(sortKeys(value), { compact: true })).toBe(sorted);
  });

  it('writes plain values too, leaving out what is undefined', () => {
    expect(pythonJson({ a: [1, 0.5, 'é', null, true], b: undefined, c: { d: 1 } })).toBe(
      '{"a": [1, 0.5, "\\u00e9", null, true], "c": {"d": 1}}',
    );
  });

  it('prints floats as repr does', () => {
    const shown = [1, -0, 0.1, 1e-5, 1.5e-7, 1e16, 123456789.25, NaN, Infinity, -Infinity].map(pythonFloat);
    expect(shown).toEqual([
      '1.0',
      '-0.0',
      '0.1',
      '1e-05',
      '1.5e-07',
      '1e+16',
      '123456789.25',
      'NaN',
      'Infinity',
      '-Infinity',
    ]);
  });

  it.each([
    '',
    '{',
    '{"a"}',
    '{"a": 1,}',
    '[1, ]',
    '[1 2]',
    '01',
    "{'a': 1}",
    '{"a": 1} x',
    '"\n"',
    '{"a": tru}',
    'nul',
  ])('refuses %j', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  it('keeps the order of keys that look like numbers, and the last of two equal ones', () => {
    expect(pythonJson(parseJson('{"10": 1, "9": 2, "10": 3}'))).toBe('{"10": 3, "9": 2}');
  });
});
