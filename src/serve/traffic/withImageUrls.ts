/** A value for JSON: the same, with images as data URLs, as OpenAI's API writes them. */
export function withImageUrls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withImageUrls);
  if (typeof value !== 'object' || value === null) return value;
  const { type, data, format } = value as Readonly<Record<string, unknown>>;
  if (type === 'image' && data instanceof Uint8Array) {
    const url = `data:image/${String(format)};base64,${Buffer.from(data).toString('base64')}`;
    return { type: 'image_url', image_url: { url } };
  }
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, withImageUrls(entry)]));
}
