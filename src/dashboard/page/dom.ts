/** An element of the page by its id. Throws if the page has no such element. */
export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element as T;
}

type Child = Node | string;

/** A new element. Texts become text, never markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A new element of a drawing (SVG). */
export function drawing(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  ...children: readonly Child[]
): Element {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** A cell of a table. On a phone, if there is no room for columns, it says itself which it is. */
export const cell = (label: string, style: string, ...children: readonly Child[]): HTMLElement =>
  make('td', { 'data-label': label, ...(style === '' ? {} : { class: style }) }, ...children);

/** A bar that shows a share, from 0 to 1. The number stands beside it, so it is not read out. */
export function meter(share: number): HTMLElement {
  const level = share > 0.9 ? 'full' : 'some';
  const value = String(Math.round(share * 100));
  return make('progress', { class: `meter ${level}`, max: '100', value, 'aria-hidden': 'true' });
}

/** Replaces the children, unless `key` says they are the same; returns whether it did. */
export function replaceIfNew(element: HTMLElement, key: string, children: () => readonly Child[]): boolean {
  if (element.dataset['key'] === key) return false;
  element.dataset['key'] = key;
  element.replaceChildren(...children());
  return true;
}

document.addEventListener('input', ({ target }) => {
  if (target instanceof HTMLSelectElement) target.dataset['chosen'] = 'yes';
});

/** Fills a select with options; keeps what somebody chose, if it is still there, else the first is taken. */
export function fillSelect(
  select: HTMLSelectElement,
  options: readonly (readonly [value: string, text: string])[],
): void {
  const before = select.value;
  const changed = replaceIfNew(select, JSON.stringify(options), () =>
    options.map(([value, text]) => make('option', { value }, text)),
  );
  const chosen = select.dataset['chosen'] === 'yes' && options.some(([value]) => value === before);
  if (changed && chosen) select.value = before;
}

/** Makes the children of an element those given, and leaves alone whatever is the same: marked text stays marked. */
export function patch(element: Element, children: readonly Element[]): void {
  children.forEach((wanted, place) => {
    const there = element.children[place];
    if (there === undefined) element.append(wanted);
    else if (!there.isEqualNode(wanted)) patchOne(there, wanted);
  });
  while (element.children.length > children.length) element.lastElementChild!.remove();
}

function patchOne(there: Element, wanted: Element): void {
  const sameKind = there.tagName === wanted.tagName && there.cloneNode().isEqualNode(wanted.cloneNode());
  const ofElements = wanted.childElementCount > 0 && wanted.childElementCount === wanted.childNodes.length;
  if (sameKind && ofElements && there.childElementCount === there.childNodes.length) patch(there, [...wanted.children]);
  else there.replaceWith(wanted);
}
