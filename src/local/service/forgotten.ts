import type { ResolvedOptions } from '../options.js';

/** Added to "there is no checkpoint": the usual reason is that the service was started again. */
export const forgotten = ({ data }: Pick<ResolvedOptions, 'data'>): string =>
  data === undefined
    ? '. This service was started without --data (the option data of LocalTinker.start), so what was saved before its start is gone'
    : '';
