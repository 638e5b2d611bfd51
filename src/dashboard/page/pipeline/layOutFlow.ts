import type { FlowReport } from '../../../operators/pressure/flow.js';

/** Where an operator is drawn: columns from the source on, a row for each branch. */
export interface Place {
  readonly column: number;
  readonly row: number;
}

/** The place of each operator, by its id. An operator is right of all that send to it; each further branch has its row. */
export function layOutFlow(reports: readonly FlowReport[]): Map<number, Place> {
  const byId = new Map(reports.map((report) => [report.id, report]));
  const places = new Map<number, Place>();
  let rows = 0;
  const put = ({ id, into }: FlowReport, column: number, row: number): void => {
    const before = places.get(id);
    if ((before !== undefined && before.column >= column) || column > reports.length) return;
    places.set(id, { column, row: before?.row ?? row });
    let next: number | undefined = row;
    for (const target of into.flatMap((each) => byId.get(each) ?? [])) {
      put(target, column + 1, places.get(target.id)?.row ?? next ?? rows++);
      next = undefined;
    }
  };
  const targets = new Set(reports.flatMap(({ into }) => into));
  for (const source of reports.filter(({ id }) => !targets.has(id))) put(source, 0, rows++);
  return places;
}
