/** A function of a token that is computed once for each: of thousands of tokens in an answer, few are different. */
export function remembering<T>(compute: (token: number) => T): (token: number) => T {
  const known = new Map<number, T>();
  return (token) => {
    let value = known.get(token);
    if (value === undefined) known.set(token, (value = compute(token)));
    return value;
  };
}
