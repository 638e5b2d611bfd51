const REDACTED = '[redacted]';

/** Fields that hold a key, whatever it looks like. */
const FIELDS =
  'authorization|proxy-authorization|(?:x-)?(?:goog-)?api[-_]?key|(?:set-)?cookie|x-auth-token|(?:access|auth|refresh|id|session)[-_]?token|client[-_]?secret|secret(?:[-_]?access)?[-_]?key|private[-_]?key|password|passwd';
const FIELD = new RegExp(`^(?:${FIELDS})$`, 'i');

/** A pattern, and what takes the place of its matches. All lengths before a match is certain are limited: callers choose the text. */
const PATTERNS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g, REDACTED],
  // https://user:password@host
  [/\b([a-z][\w+.-]{0,20}:\/\/)[^\s/@:"']{1,256}:[^\s/@"']{1,256}@/gi, `$1${REDACTED}@`],
  // ?api_key=…&signature=…
  [
    /([?&][\w.-]{0,40}(?:key|token|secret|sig|signature|password|auth|credential|session)[\w.-]{0,40}=)[^&#\s"'<>\\]+/gi,
    `$1${REDACTED}`,
  ],
  // Authorization: …, also as a field of JSON
  [
    /\b((?:proxy-)?authorization|(?:x-)?(?:goog-)?api-key|(?:set-)?cookie|x-auth-token)(\\{0,8}["']?\s{0,8}:\s{0,8}\\{0,8}["']?)[^\r\n"'\\]+/gi,
    `$1$2${REDACTED}`,
  ],
  // "password": "…"
  [new RegExp(`(["'](?:${FIELDS})\\\\{0,8}["']\\s{0,8}:\\s{0,8}\\\\{0,8}["'])[^"'\\\\]+`, 'gi'), `$1${REDACTED}`],
  // SERVICE_API_KEY=…
  [/\b([A-Z][A-Z0-9_]{0,60}_(?:KEY|TOKEN|SECRET|PASSWORD)=["']?)[^\s"']+/g, `$1${REDACTED}`],
  // What keys look like: those of model providers, clouds, code hosts and chat systems, and web tokens.
  [
    /\b(?:sk|pk|rk|tml|rx|hf|xai|gsk)[-_][\w-]{16,}|\b(?:gh[pousr]|github_pat|glpat|xox[abprs])[-_][\w-]{10,}|\bAKIA[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|\bBearer\s+[\w.~+/-]{8,}=*/g,
    REDACTED,
  ],
];

/** Whether a field of this name holds a key. */
export const holdsKey = (name: string): boolean => FIELD.test(name);

/** The text without `secrets`, and without what looks like a key or stands where keys stand. */
export function withoutKeys(text: string, secrets: Iterable<string>): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, REDACTED);
  for (const [pattern, replacement] of PATTERNS) clean = clean.replaceAll(pattern, replacement);
  return clean;
}
