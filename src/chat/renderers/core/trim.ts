/** Without its leading newlines. */
export const stripStartNewlines = (text: string): string => text.replace(/^\n+/, '');

/** Without its trailing newlines. */
export const stripEndNewlines = (text: string): string => text.replace(/\n+$/, '');

/** Without newlines at either end, as Python's `strip('\n')`. */
export const stripNewlines = (text: string): string => stripEndNewlines(stripStartNewlines(text));
