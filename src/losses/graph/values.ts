import { ValidationError } from '../../wire/tinkerError.js';
import { constant, Variable } from './variable.js';

export interface Slice {
  readonly slice: readonly (number | null)[];
}
export interface Dictionary {
  readonly dict: Readonly<Record<string, Value>>;
}
/** A dtype, device or layout, which mean nothing here: every number is a double. */
export interface Named {
  readonly named: string;
}
/** What flows between the nodes of a graph. `'...'` is Python's Ellipsis. */
export type Value = Variable | number | boolean | string | null | readonly Value[] | Slice | Dictionary | Named;

export const isSlice = (value: Value): value is Slice =>
  typeof value === 'object' &&
  value !== null &&
  'slice' in value &&
  !(value instanceof Variable) &&
  !Array.isArray(value);
export const isDictionary = (value: Value): value is Dictionary =>
  typeof value === 'object' && value !== null && 'dict' in value;

export const isNamed = (value: Value | undefined): value is Named =>
  typeof value === 'object' && value !== null && 'named' in value;
/** Whether it names a type of whole numbers, or of true and false. */
export const isWhole = ({ named }: Named): boolean => /^(torch\.)?(u?int\d*|long|short|bool)$/.test(named);

/** An argument as the graph writes it, with every reference resolved. */
export function decodeArgument(argument: unknown, resolve: (name: string) => Value): Value {
  const decode = (inner: unknown): Value => decodeArgument(inner, resolve);
  if (argument === null || ['number', 'boolean', 'string'].includes(typeof argument)) {
    return argument as number | boolean | string | null;
  }
  if (Array.isArray(argument)) return argument.map(decode);
  const [entry, ...rest] = Object.entries(argument as object) as [string, unknown][];
  if (entry === undefined || rest.length > 0)
    throw new ValidationError('an argument of the graph has not exactly one key');
  const [kind, value] = entry;
  switch (kind) {
    case 'ref':
      return resolve(String(value));
    case 'tuple':
      return (value as unknown[]).map(decode);
    case 'dict':
      return { dict: Object.fromEntries(Object.entries(value as object).map(([key, item]) => [key, decode(item)])) };
    case 'slice':
      return { slice: (value as unknown[]).map((bound) => toBound(decode(bound))) };
    case 'ellipsis':
      return '...';
    case 'float':
      return value === 'inf' ? Infinity : value === '-inf' ? -Infinity : NaN;
    case 'dtype':
    case 'device':
    case 'layout':
    case 'memory_format':
      return { named: String(value) };
    default:
      throw new ValidationError(`an argument of kind ${kind} is not known here`);
  }
}

const toBound = (value: Value): number | null => (value === null ? null : toNumber(value));

export function toVariable(value: Value | undefined): Variable {
  if (value instanceof Variable) return value;
  if (typeof value === 'number' || typeof value === 'boolean') return constant(value);
  throw new ValidationError('a tensor or number was expected');
}

export function toNumber(value: Value | undefined): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  if (value instanceof Variable && value.data.length === 1) return value.data[0]!;
  throw new ValidationError('a number was expected');
}

/** One number or a list of them, as shapes and dimensions are given. */
export function toNumbers(value: Value | undefined): number[] {
  return Array.isArray(value) ? (value as readonly Value[]).map(toNumber) : [toNumber(value)];
}
