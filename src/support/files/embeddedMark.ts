/** A file in each folder of a tokenizer that the embedded service writes. It holds the name of the model. */
export const EMBEDDED_MARK = '.tinker-rx-model';
