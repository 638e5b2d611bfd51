export type ReplyHeaders = Readonly<Record<string, string>>;

/** What an endpoint answers; the server writes it out. */
export interface Reply {
  readonly status: number;
  readonly headers: ReplyHeaders;
  /** Bytes, or a file, from its `first` byte to its `last`. Default all of them. */
  readonly body: Uint8Array | { readonly file: string; readonly first?: number; readonly last?: number };
}

export const JSON_TYPE = 'application/json';
export const PROTOBUF_TYPE = 'application/x-protobuf';

const NOTHING = new Uint8Array();

export const bytes = (body: Uint8Array, contentType: string, status = 200, headers: ReplyHeaders = {}): Reply => ({
  status,
  headers: { 'content-type': contentType, ...headers },
  body,
});

export const json = (value: unknown, status = 200, headers: ReplyHeaders = {}): Reply =>
  bytes(Buffer.from(JSON.stringify(value)), JSON_TYPE, status, headers);

export const text = (value: string, status: number): Reply => bytes(Buffer.from(value), 'text/plain', status);

export const noContent = (): Reply => ({ status: 204, headers: {}, body: NOTHING });

export const redirect = (location: string, headers: ReplyHeaders = {}): Reply => ({
  status: 302,
  headers: { location, ...headers },
  body: NOTHING,
});
