import { catchError, concatMap, defer, EMPTY, endWith, ignoreElements, map, merge, type Observable } from 'rxjs';
import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import { keepGate } from '../../operators/pressure/keepGate.js';
import { toObservable } from '../../support/toObservable.js';
import { ValidationError } from '../../wire/tinkerError.js';

/** Text that other tokenizers divide in other places: words, digits, spaces, other scripts. */
const PROBE = 'The 1,024 tokens  of naïve 東京\n\treturn "x" != 3.14159;';

/**
 * Emits the source once it is known that teachers and student count tokens alike: a teacher with another tokenizer would grade other words
 * than the student said. Teachers without `getTokenizer`, or whose tokenizer cannot be loaded, are not checked.
 * Fails with a {@link ValidationError} where one differs.
 */
export function whereTokenizersAgree<A>(
  student: Tokenizer,
  teachers: readonly unknown[],
  source: Observable<A>,
): Observable<A> {
  const checks = [...new Set(teachers)].map((teacher) =>
    defer(() => {
      const { getTokenizer } = teacher as { getTokenizer?: () => Tokenizer | PromiseLike<Tokenizer> };
      return typeof getTokenizer === 'function' ? toObservable(getTokenizer.call(teacher)) : EMPTY;
    }).pipe(
      catchError(() => EMPTY),
      map((tokenizer) => refuseOther(student, tokenizer)),
    ),
  );
  return merge(...checks).pipe(
    ignoreElements(),
    endWith(undefined),
    keepGate(),
    concatMap(() => source),
  );
}

function refuseOther(student: Tokenizer, teacher: Tokenizer): void {
  const [own, other] = [student.encode(PROBE), teacher.encode(PROBE)];
  if (own.length === other.length && own.every((token, place) => token === other[place])) return;
  throw new ValidationError(
    `the teacher's tokenizer (${teacher.id}) is not the student's (${student.id}): token by token a teacher can only grade a student with the same one`,
  );
}
