/** The event by which `toServerSentEvents` says that there will be no more, and at which `fromServerSentEvents` completes. */
export const SSE_COMPLETE = { type: 'complete', data: '{}' } as const;
