const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Whether a text can be the name of a header. */
export const isHeaderName = (text: string): boolean => NAME.test(text);

/** Whether a text can be the value of a header: one line, one byte per character. */
export const isHeaderValue = (text: string): boolean => !NO_VALUE.test(text);
