/** The rows of a body: one JSON object, an array of them, or JSON lines. @throws Error that names the line that is not JSON */
export function rowsOfBody(body: Buffer): readonly unknown[] {
  const text = body.toString('utf8');
  try {
    const whole = JSON.parse(text) as unknown;
    return Array.isArray(whole) ? whole : [whole];
  } catch {
    return linesOf(text);
  }
}

function linesOf(text: string): readonly unknown[] {
  const rows: unknown[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      rows.push(JSON.parse(line));
    } catch {
      throw new Error(`expected JSON or JSON lines, and line ${index + 1} is not JSON`);
    }
  }
  if (rows.length === 0) throw new Error('expected JSON or JSON lines, and the body is empty');
  return rows;
}
