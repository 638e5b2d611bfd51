import { LineSplitter, type Line } from '../reading/lineSplitter.js';
import type { RowTally } from './rowTally.js';

/** One JSON value per line, from bytes. */
export async function* jsonLines<T>(chunks: AsyncIterable<Buffer>, tally: RowTally<T>): AsyncGenerator<Iterable<T>> {
  const splitter = new LineSplitter(tally.maxRowBytes);
  for await (const chunk of chunks) {
    yield rowsOf(splitter.push(chunk), tally);
    tally.report(false);
  }
  yield rowsOf(splitter.end(), tally);
  tally.report(true);
}

function* rowsOf<T>(lines: Iterable<Line>, tally: RowTally<T>): Generator<T> {
  for (const { number, text, problem } of lines) {
    if (text !== undefined) yield* tally.take(number, () => JSON.parse(text) as unknown);
    else if (problem === 'too long') tally.tooLong(number);
    else tally.skip(number, 'not UTF-8');
  }
}
