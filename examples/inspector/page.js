/** The page: a coordinator, its runs as a table, what happens as a log, and the Stately inspector beside it. */
import { createBrowserInspector } from '@statelyai/inspect';
import { inspectLeases } from 'lessor';
import { Coordinator, RUNS, STORY, WORKERS } from './coordinator.js';

const STEP_MILLISECONDS = 700;

const asked = new URLSearchParams(location.search);
// It opens nothing until it is started. What happens before is kept, and shown then.
const inspector = createBrowserInspector({
  autoStart: false,
  maxDeferredEvents: 1000,
  url: asked.get('inspector') ?? 'https://stately.ai/inspect',
});
const log = document.querySelector('#log');
const coordinator = new Coordinator({
  inspect: inspectLeases(inspector.inspect, { limit: 20 }),
  tell: (text) => log.prepend(element('li', text)),
});

onClick('#open', ({ target }) => {
  target.disabled = true;
  inspector.start();
});
onClick('#act', async ({ target }) => {
  target.disabled = true;
  for (const step of STORY) {
    step(coordinator);
    render();
    await new Promise((resolve) => setTimeout(resolve, STEP_MILLISECONDS));
  }
  target.disabled = false;
});
for (const seconds of [1, 5]) onClick(`#pass-${seconds}`, () => coordinator.pass(seconds));
onClick('#expire', () => coordinator.expire());
render();

function onClick(selector, act) {
  document.querySelector(selector).addEventListener('click', (event) => {
    act(event);
    render();
  });
}

function render() {
  document.querySelector('#now').textContent = `${coordinator.now} s`;
  document.querySelector('#runs').replaceChildren(...RUNS.map(row));
}

function row(runId) {
  const { state, workerId = '', fencingToken = '', secondsLeft = '', chart } = coordinator.stateOf(runId);
  const cells = [runId, state, workerId, fencingToken, secondsLeft, chart].map((text) => element('td', text));
  const line = element('tr', '', { 'data-run': runId, class: state });
  line.append(...cells, ...WORKERS.map((worker) => hand(runId, worker)));
  return line;
}

/** What a worker has in its hand, and may try with it. */
function hand(runId, workerId) {
  const lease = coordinator.inHand(runId, workerId);
  const cell = element('td', lease ? `token ${lease.fencingToken} ` : 'nothing ', { 'data-worker': workerId });
  for (const call of ['acquire', 'heartbeat', 'release']) {
    const button = element('button', call, { 'data-call': call });
    button.disabled = call !== 'acquire' && !lease;
    button.addEventListener('click', () => {
      coordinator[call](runId, workerId);
      render();
    });
    cell.append(button);
  }
  return cell;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
