/**
 * The text the embedded models are pretrained on, made by templates: short scenes in simple English, questions and
 * answers, lists. All of it is written here, so that the weights may be shipped under the project's licence.
 * `document(random)` gives one document as turns; the same random numbers give the same text.
 */
const NAMES = ['Tom', 'Anna', 'Ben', 'Mia', 'Sam', 'Lucy', 'Max', 'Eva', 'Jack', 'Lily', 'Paul', 'Nora'];
const COLORS = ['red', 'blue', 'green', 'yellow', 'white', 'black', 'brown', 'pink'];
const THINGS = [
  'ball',
  'book',
  'cup',
  'hat',
  'box',
  'kite',
  'lamp',
  'chair',
  'coat',
  'boat',
  'bell',
  'key',
  'spoon',
  'map',
];
const PLACES = [
  'garden',
  'kitchen',
  'park',
  'school',
  'forest',
  'house',
  'shop',
  'river',
  'farm',
  'station',
  'library',
];
const ANIMALS = ['dog', 'cat', 'cow', 'duck', 'horse', 'sheep', 'bird', 'mouse', 'frog', 'lion', 'rabbit', 'fox'];
const SOUNDS = {
  dog: 'woof',
  cat: 'meow',
  cow: 'moo',
  duck: 'quack',
  horse: 'neigh',
  sheep: 'baa',
  bird: 'tweet',
  mouse: 'squeak',
  frog: 'croak',
  lion: 'roar',
};
const FEELINGS = ['happy', 'sad', 'tired', 'hungry', 'brave', 'calm', 'cold', 'proud'];
const OPPOSITES = [
  ['big', 'small'],
  ['hot', 'cold'],
  ['fast', 'slow'],
  ['old', 'new'],
  ['up', 'down'],
  ['day', 'night'],
  ['happy', 'sad'],
  ['full', 'empty'],
  ['open', 'closed'],
  ['high', 'low'],
  ['long', 'short'],
  ['wet', 'dry'],
  ['hard', 'soft'],
  ['loud', 'quiet'],
];
const COLOR_OF = [
  ['the sky', 'blue'],
  ['grass', 'green'],
  ['snow', 'white'],
  ['coal', 'black'],
  ['a lemon', 'yellow'],
  ['blood', 'red'],
  ['chocolate', 'brown'],
  ['the sea', 'blue'],
  ['milk', 'white'],
  ['a tomato', 'red'],
  ['a leaf', 'green'],
  ['the sun', 'yellow'],
];
const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const VERBS = [
  ['runs', 'to'],
  ['walks', 'to'],
  ['goes', 'to'],
  ['looks', 'at'],
  ['waits', 'at'],
  ['comes back', 'from'],
];
const SHORT_WORDS = [
  'sun',
  'tree',
  'bread',
  'stone',
  'water',
  'light',
  'green',
  'music',
  'paper',
  'cloud',
  'apple',
  'table',
];

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const article = (word) => (/^[aeiou]/.test(word) ? 'an' : 'a');

export function createWriter(random) {
  const below = (n) => Math.floor(random.uniform() * n);
  const pick = (list) => list[below(list.length)];
  const chance = (p) => random.uniform() < p;
  const two = (list) => {
    const first = below(list.length);
    return [list[first], list[(first + 1 + below(list.length - 1)) % list.length]];
  };

  const scene = () => {
    const [a, b] = two(NAMES);
    const color = pick(COLORS);
    const thing = pick(THINGS);
    const animal = pick(ANIMALS);
    const place = pick(PLACES);
    const [verb, preposition] = pick(VERBS);
    const lines = [
      `${a} has ${article(color)} ${color} ${thing}.`,
      `${a} ${verb} ${preposition} the ${place}.`,
      `In the ${place}, ${a} sees ${article(animal)} ${animal}.`,
      SOUNDS[animal] === undefined ? `The ${animal} is quiet.` : `The ${animal} says ${SOUNDS[animal]}.`,
      `${b} asks: "Where is the ${thing}?"`,
      `"The ${thing} is in the ${place}," says ${a}.`,
      `${a} gives the ${thing} to ${b}.`,
      `${b} is ${pick(FEELINGS)} and says thank you.`,
      `The ${thing} is ${color}.`,
      `Then ${a} and ${b} go home.`,
    ].filter(() => chance(0.5));
    return lines.length > 0 ? lines.join(' ') : `${a} likes the ${animal}.`;
  };

  /** Facts are mostly told in a sentence, seldom in the one word asked for: that is left to be learned. */
  const fact = (question, word, ...sentences) => [question, chance(0.1) ? word : pick(sentences)];

  const facts = [
    () => {
      const [thing, color] = pick(COLOR_OF);
      return fact(`What color is ${thing}?`, color, `${capital(thing)} is ${color}.`, `It is ${color}.`);
    },
    () => {
      const [animal, sound] = pick(Object.entries(SOUNDS));
      return fact(`What does the ${animal} say?`, sound, `The ${animal} says ${sound}.`, `It says ${sound}.`);
    },
    () => {
      const [a, b] = pick(OPPOSITES);
      const [from, to] = chance(0.5) ? [a, b] : [b, a];
      return fact(`What is the opposite of ${from}?`, to, `The opposite of ${from} is ${to}.`, `It is ${to}.`);
    },
    () => {
      const day = below(7);
      const [next, before] = [DAYS[(day + 1) % 7], DAYS[(day + 6) % 7]];
      return chance(0.5)
        ? fact(`Which day comes after ${DAYS[day]}?`, next, `${next} comes after ${DAYS[day]}.`, `It is ${next}.`)
        : fact(
            `Which day comes before ${DAYS[day]}?`,
            before,
            `${before} comes before ${DAYS[day]}.`,
            `It is ${before}.`,
          );
    },
  ];

  const questions = [
    () => {
      const word = pick([...SHORT_WORDS, ...THINGS, ...ANIMALS]);
      return [`Spell the word ${word}.`, [...word].join('-')];
    },
    () => {
      const word = pick([...SHORT_WORDS, ...THINGS, ...ANIMALS, ...NAMES]);
      return [`Say ${word}.`, word];
    },
    () => {
      const from = below(7);
      return [`Count from ${from} to ${from + 3}.`, [0, 1, 2, 3].map((step) => from + step).join(', ')];
    },
    () => {
      const [a, b] = two(NAMES);
      const [thing, color, place] = [pick(THINGS), pick(COLORS), pick(PLACES)];
      const story = `${a} has ${article(color)} ${color} ${thing}. ${b} is in the ${place}.`;
      return pick([
        [`${story} Who has the ${thing}?`, `${a} has the ${thing}.`],
        [`${story} Where is ${b}?`, `${b} is in the ${place}.`],
        [`${story} What color is the ${thing}?`, `The ${thing} is ${color}.`],
      ]);
    },
    () => [pick(['Hello!', 'Hi!']), pick(['Hello! How can I help you?', 'Hi! What would you like to know?'])],
    () => {
      const name = pick(NAMES);
      return [`My name is ${name}.`, `Nice to meet you, ${name}!`];
    },
    () => [pick(['Thank you!', 'Thanks!']), pick(['You are welcome!', 'My pleasure!'])],
    () => ['Tell me a story.', scene()],
  ];

  const exchange = () => pick(chance(0.5) ? facts : questions)();

  return {
    /** One document: a list of turns, or a plain text under the role `text`. */
    document() {
      const kind = random.uniform();
      if (kind < 0.15) return [{ role: 'text', text: `${scene()} ${scene()}` }];
      const turns = chance(0.15)
        ? [{ role: 'system', text: pick(['You are a helpful assistant.', 'Be brief.', 'Answer in English.']) }]
        : [];
      for (let count = chance(0.35) ? 2 : 1; count > 0; count--) {
        const [question, answer] = exchange();
        turns.push({ role: 'user', text: question }, { role: 'assistant', text: answer });
      }
      return turns;
    },
  };
}
