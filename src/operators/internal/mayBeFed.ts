import { isObservable } from 'rxjs';

/**
 * Whether what is made of a value may be fed by the source the value came from, as the parts that `window` and `groupBy`
 * give are: then it needs the source to go on before it can end. A future is not: it has its one result by itself.
 */
export function mayBeFed(value: unknown): boolean {
  return isObservable(value) && !('then' in value);
}
