import { describeErrors } from '../../wire/record.js';
import type { RowSchema, StandardResult } from '../RowSchema.js';

/** The row as the schema gives it. @throws Error that names the place and what was expected, never the value */
export async function checkRow<T>(schema: RowSchema<T>, row: unknown): Promise<T> {
  // First: schemas of some libraries are functions, and those of others have a `decode` that is not io-ts's.
  if ('~standard' in schema) {
    const result = await schema['~standard'].validate(row);
    if (result.issues === undefined) return result.value;
    throw new Error(describeIssues(result.issues));
  }
  if (typeof schema === 'function') return schema(row);
  const decoded = schema.decode(row);
  if (decoded._tag === 'Right') return decoded.right;
  throw new Error(describeErrors(decoded.left));
}

const MOST_DESCRIBED = 5;

function describeIssues(issues: Extract<StandardResult<unknown>, { issues: object }>['issues']): string {
  const lines = issues.slice(0, MOST_DESCRIBED).map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part));
    return keys.length === 0 ? message : `${keys.join('.')}: ${message}`;
  });
  const more = issues.length - MOST_DESCRIBED;
  return more > 0 ? `${lines.join('; ')}; and ${more} more` : lines.join('; ');
}
