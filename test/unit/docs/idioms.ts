/** Each idiom, with what to write instead. */
const IDIOMS: readonly (readonly [RegExp, string])[] = [
  [
    /\b(?:cycles?|nats|tokens?|samples?|bytes|steps?|rows?|requests?|replies|MB|cores?|values?|targets?) an? (?:step|token|position|second|minute|line|prompt|answer|row|epoch|datum|request)\b/,
    'per step, per token, …',
  ],
  [/\b(?:a|one) (?:line|request|row) an? (?:prompt|conversation|row|request|answer)\b/, 'one line per prompt'],
  [/\b(?:goes|going|went|go) on\b(?! (?:the|a|this|to the)\b)/, 'continues, resumes'],
  [/\bunder way\b/, 'in flight, pending'],
  [/\bof (?:your|one's|its|their) own\b/, 'custom, separate'],
  [/\bby (?:itself|themselves|oneself)\b/, 'automatically'],
  [/\b(?:what|which) lies (?:downstream|behind|beneath)\b/, 'operators downstream, the cause'],
  [
    /\bwhat is there\b|\b(?:once|when|until|as soon as) (?:it|they|a result|an answer|all of them) (?:is|are) there\b/,
    'has arrived',
  ],
  [/\b(?:is|are) not there\b/, 'is not supported, does not exist'],
  [/(?<!\bfrom )\bwhere (?:it|they|Node|the service|the server) can\b/, 'if supported'],
  [/\bmost (?:tokens|runs|rows|bytes) (?:of|to)\b/, 'maximum tokens'],
  [/\b(?:that|which) (?:is|are) (?:none|no (?:text|terminal|conversations?))\b/, 'is not valid, is not a …'],
  [/\b(?:is|are|or) no (?:JSON|tokens?|rank file|\w+ (?:file|service|adapter)\b)/, 'is not JSON, is not a …'],
  [/\b(?:does not|do not|did not|will not) take (?:the|this|a) key\b|\btakes (?:the|this|a) key\b/, 'accepts the key'],
  [/\bsomebody answers\b|\b(?:is|are) ill\b/, 'a server, fails'],
  [/\b(?:tells|tell) (?:no|its|their|of)\b/, 'reports'],
  [/\bno price of\b/, 'no price for'],
  [/\b(?:after|every|of|save|for) so (?:many|often)\b/, 'every n steps'],
  [/\bfails? in passing\b/, 'fails transiently'],
  [/\bfor ever\b/, 'forever'],
  [/\bunless (?:told|you say) otherwise\b/, 'by default'],
  [/\b(?:on whose word|in vain|dear)\b/, 'set by, wasted, expensive'],
  [/\bpromises? of (?:a|the) (?:training )?(?:result|service)\b|\blost promises?\b/, 'result handle, lost result'],
  [/\bheld against\b/, 'compared with, checked against'],
];

/** More of them, which only comments have. */
const IN_COMMENTS: readonly (readonly [RegExp, string])[] = [
  [
    /\b(?:undefined|absent|empty|null|NaN|none|nothing)`? where\b|@throws \w+(?: \d+)? where\b|\bthrows (?:at once )?where\b/,
    'undefined if, @throws … if',
  ],
  [/\bwhoever\b|(?:^|[.;:] )who (?!speaks|judges|is\b|has\b)\w+s\b/, 'a caller that, the reader'],
  [/\bwithout a word\b|\ba word (?:for|to|whenever)\b|\bworth a word\b/, 'silently, reported'],
  [/\bso (?:many|few)\b(?! that)/, 'n, at most n'],
  [/\bshall\b/, 'must'],
  [/\bas many \w+ as (?:it|they) (?:has|have) not\b/, 'if the numbers differ'],
  [/\bin place of\b/, 'instead of'],
  [/\btells whether\b/, 'returns whether'],
  [/\bit is none\b|\bhas not what\b|\b(?:is|are) (?:nobody's|no \w+ of ours)\b/, 'is not one, lacks'],
  [/\b(?:nobody|somebody) (?:asks|waits|looks|reads|listens)\b/, 'no caller, without subscribers'],
  [/\bhow(?:ever)? (?:many there are|often it is)\b|\bthe more \w+\b/, 'for any number'],
  [
    /\b(?:bits|bytes|rows|samples|changes|calls|requests|tokens|points) an? (?:byte|message|block|epoch|page|run|sample|call|cycle|model|datum)\b/,
    'per …',
  ],
];

const global = (list: typeof IDIOMS) => list.map(([pattern, instead]) => [new RegExp(pattern, 'gi'), instead] as const);
const GLOBAL = global(IDIOMS);
const OF_COMMENTS = global([...IDIOMS, ...IN_COMMENTS]);

/** The idioms in a text, as `what: "where" → instead`. */
export const idiomsIn = (name: string, text: string): string[] => find(GLOBAL, name, text);

/** The idioms in a comment, likewise. */
export const idiomsInComment = (name: string, text: string): string[] => find(OF_COMMENTS, name, text);

function find(list: typeof GLOBAL, name: string, text: string): string[] {
  const flat = text.replace(/\s+/g, ' ').trim();
  return list.flatMap(([pattern, instead]) =>
    Array.from(flat.matchAll(pattern), ({ 0: found, index }) => {
      const around = flat.slice(Math.max(0, index - 30), index + found.length + 20);
      return `${name}: "${found}" in "…${around}…" → ${instead}`;
    }),
  );
}
