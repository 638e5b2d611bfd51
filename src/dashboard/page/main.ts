import { audit, catchError, combineLatest, interval, merge, NEVER, race, startWith, Subject, tap, timer } from 'rxjs';
import { foldDashboard } from '../client/foldDashboard.js';
import { fromDashboard } from '../client/fromDashboard.js';
import { Curves } from './curves.js';
import { byId } from './dom.js';
import { renderFlow } from './pipeline/flow.js';
import { Rollouts } from './rollouts/rollouts.js';
import { Runs } from './runs.js';
import { Samples } from './samples/samples.js';
import { renderCheckpoints, renderErrors } from './tables.js';
import { theme } from './theme.js';
import { renderTiles } from './tiles.js';
import { renderWaiting } from './waiting.js';

const RENDER_MS = 200;
const LOADING_MS = 1000;
const CLOCK_MS = 1000;

const SAYS: Readonly<Record<string, string>> = {
  connecting: 'connecting',
  open: 'loading',
  whole: 'live',
  ended: 'ended',
  lost: 'connection lost, trying again',
  refused: 'refused: open the address as it was printed',
};

const connection = byId('connection');
const say = (state: string) => {
  if (connection.dataset['state'] === state) return;
  connection.dataset['state'] = state;
  connection.textContent = SAYS[state] ?? state;
};

const runs = new Runs();
const curves = new Curves(runs);
const rollouts = new Rollouts();
const samples = new Samples();

const whole = new Subject<void>();
/** Whether everything there was has come: a page that comes back is sent only what it missed. */
let there = false;
const state$ = fromDashboard(location.href, {
  // While it tries again, that the connection is lost says more than that it tries.
  onState: (state) => {
    const first = connection.dataset['state'] === undefined;
    if (state !== 'connecting' || first) say(state === 'open' && there ? 'whole' : state);
  },
}).pipe(
  foldDashboard(),
  tap((state) => {
    there = state.whole;
    if (!there) return;
    if (connection.dataset['state'] !== 'ended') say('whole');
    whole.next();
  }),
  catchError(() => {
    say('refused');
    return NEVER;
  }),
);

const asked = merge(runs.changes, curves.changes, rollouts.changes, samples.changes, interval(CLOCK_MS)).pipe(
  startWith(undefined),
);
byId<HTMLAnchorElement>('to-compare').href = `compare${location.search}`;
combineLatest([state$, theme(), asked])
  // While everything there was is coming in, drawing parts of it would only hold it up.
  .pipe(audit(([state]) => (state.whole ? timer(RENDER_MS) : race(whole, timer(LOADING_MS)))))
  .subscribe(([state, shown]) => {
    const nowMs = Date.now() + state.aheadMs;
    byId('title').textContent = byId('title').title = document.title = state.title;
    const { runs: all, events } = state;
    const idle = all.size > 0 && [...all.values()].every((run) => run.hasEnded(nowMs)) && !events.load?.calls;
    const said = connection.dataset['state'] ?? '';
    if (['whole', 'ended'].includes(said)) say(idle ? 'ended' : 'whole');
    runs.render(state, nowMs);
    renderTiles(state, nowMs);
    curves.render(state, shown);
    renderFlow(state);
    renderWaiting(state, nowMs);
    rollouts.render(state);
    samples.render(state);
    renderCheckpoints(state);
    renderErrors(state);
  });
