import { createInterface } from 'node:readline';
import { CliError } from '../CliError.js';
import { INTERRUPTED, type Context } from '../context.js';

/** Asks for a secret: masked on a terminal, or the first line of what is piped in. */
export function askSecret({ stdin, stderr }: Context, question: string): Promise<string> {
  return stdin.isTTY === true ? askMasked(stdin as NodeJS.ReadStream, stderr, question) : firstLine(stdin);
}

async function firstLine(stdin: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: stdin })) return line;
  return '';
}

function askMasked(stdin: NodeJS.ReadStream, stderr: Context['stderr'], question: string): Promise<string> {
  // Before the question, because a user may type as soon as it appears, and the terminal must not echo that.
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  stderr.write(question);
  return new Promise((resolve, reject) => {
    const typed: string[] = [];
    const end = (finish: () => void) => {
      stdin.setRawMode(false);
      stdin.pause();
      stdin.off('data', read);
      stderr.write('\n');
      finish();
    };
    const read = (chunk: string) => {
      // Arrow keys and the like.
      if (chunk.startsWith('\u001b')) return;
      for (const character of chunk) {
        if (character === '\r' || character === '\n') return end(() => resolve(typed.join('')));
        if (character === '\u0003' || character === '\u0004')
          return end(() => reject(new CliError('Interrupted', { exitCode: INTERRUPTED })));
        if (character === '\b' || character === '\u007f') {
          if (typed.pop() !== undefined) stderr.write('\b \b');
        } else if (character >= ' ') {
          typed.push(character);
          stderr.write('*');
        }
      }
    };
    stdin.on('data', read);
    stdin.resume();
  });
}
