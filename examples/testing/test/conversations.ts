import { ByteTokenizer, getRenderer } from 'tinker-rx/chat';

/** Renders without downloading a tokenizer: a byte is a token. The embedded models speak it. */
export const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());

export const conversation = (question: string, answer: string): unknown => ({
  messages: [
    { role: 'user', content: question },
    { role: 'assistant', content: answer },
  ],
});

export const capitals = [
  conversation('What is the capital of France?', 'Paris'),
  conversation('What is the capital of Japan?', 'Tokyo'),
  conversation('What is the capital of Italy?', 'Rome'),
  conversation('What is the capital of Cuba?', 'Havana'),
];
