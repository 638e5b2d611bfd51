// A caller over HTTP/1.1 that does as little as can be done, so that what is measured is the server: one request at a time on one socket
// that stays open, answers with a content-length.
import { connect } from 'node:net';

const END_OF_HEAD = '\r\n\r\n';

export class BareCaller {
  #socket;
  #head;
  #text = '';
  #waiting;

  constructor(url, apiKey, path) {
    const { hostname, port, host } = new URL(url);
    this.#head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${apiKey}\r\ncontent-type: application/json\r\n`;
    this.#socket = connect(Number(port), hostname).setNoDelay().setEncoding('latin1');
    this.#socket.on('data', (text) => this.#read(text));
    this.#socket.on('error', (error) => this.#waiting?.reject(error));
    this.#socket.on('close', () => this.#waiting?.reject(new Error('the server hung up')));
  }

  /** The answer to one request, read as JSON. */
  ask(body) {
    const text = JSON.stringify(body);
    this.#socket.write(`${this.#head}content-length: ${Buffer.byteLength(text)}${END_OF_HEAD}${text}`);
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }));
  }

  close() {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #read(text) {
    this.#text += text;
    const head = this.#text.indexOf(END_OF_HEAD);
    if (head < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#text)[1]);
    const begin = head + END_OF_HEAD.length;
    if (this.#text.length < begin + length) return;
    const answer = { status: Number(this.#text.slice(9, 12)), body: this.#text.slice(begin, begin + length) };
    this.#text = '';
    this.#waiting.resolve({ status: answer.status, json: JSON.parse(Buffer.from(answer.body, 'latin1').toString()) });
  }
}
