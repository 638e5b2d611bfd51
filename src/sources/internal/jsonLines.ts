import { LineSplitter, type Line } from './lineSplitter.js';
import type { RowTally } from './rowTally.js';

/** One JSON value a line, from bytes. */
export async function* jsonLines<T>(chunks: AsyncIterable<Buffer>, tally: RowTally<T>): AsyncGenerator<Iterable<T>> {
  const splitter = new LineSplitter();
  for await (const chunk of chunks) {
    yield rowsOf(splitter.push(chunk), tally);
    tally.report(false);
  }
  yield rowsOf(splitter.end(), tally);
  tally.report(true);
}

function* rowsOf<T>(lines: Iterable<Line>, tally: RowTally<T>): Generator<T> {
  for (const { number, text } of lines) {
    if (text === undefined) tally.skip(number, 'not UTF-8');
    else yield* tally.take(number, () => JSON.parse(text) as unknown);
  }
}
