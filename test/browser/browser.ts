import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const ARTIFACTS = fileURLToPath(new URL('../../artifacts/', import.meta.url));

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** Debian's chromium, told to stay off the network. @throws Error that says how to get it, where it is missing. */
export async function launch(): Promise<Browser> {
  if (!existsSync(EXECUTABLE)) {
    throw new Error(
      `${EXECUTABLE} is not there: install chromium (apt-get install chromium), or say in CHROMIUM where it is`,
    );
  }
  return chromium.launch({
    executablePath: EXECUTABLE,
    headless: true,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      // Containers have a small one.
      '--disable-dev-shm-usage',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

export interface Opened {
  readonly page: Page;
  /** What went wrong in the page: thrown errors, console errors, requests to anybody else. */
  readonly problems: string[];
}

/** A page in a window of its own. */
export async function open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Opened> {
  return openIn(await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options }), url);
}

/** A page in a window that is there. */
export async function openIn(context: BrowserContext, url: string): Promise<Opened> {
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    // A connection that is refused while the server is down is what the test is about.
    if (message.type() === 'error' && !message.text().includes('ERR_')) problems.push(message.text());
  });
  page.on('request', (request) => {
    const asked = new URL(request.url());
    if (asked.protocol !== 'data:' && asked.host !== new URL(url).host) problems.push(`asked ${request.url()}`);
  });
  await page.goto(url);
  return { page, problems };
}

/** Keeps a picture under `artifacts/`. */
export async function picture(page: Page, name: string, fullPage = true): Promise<void> {
  mkdirSync(ARTIFACTS, { recursive: true });
  await page.screenshot({ path: `${ARTIFACTS}dashboard-${name}.png`, fullPage });
}

/** Waits until what a function of the page gives satisfies a condition, and returns it. */
export async function eventually<T>(read: () => Promise<T>, holds: (value: T) => boolean, forMs = 240_000): Promise<T> {
  const end = Date.now() + forMs;
  for (;;) {
    const value = await read();
    if (holds(value)) return value;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(value)} after ${forMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
