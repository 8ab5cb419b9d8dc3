/** What a test file starts, it ends: timers, connections, servers and processes left behind fail the file. */
import { afterAll } from 'vitest';

/** A connection or a process that was told to end needs a moment to be gone. */
const GRACE_SECONDS = 3;

const before = active();

// Registered first, so that it runs last, after the file's own clean-up.
afterAll(async () => {
  const deadline = performance.now() + GRACE_SECONDS * 1000;
  while (leaks().length > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
  const left = leaks();
  if (left.length > 0) throw new Error(`This file leaves behind: ${left.join(', ')}`);
});

function leaks(): string[] {
  return [...active()]
    .filter(([kind, count]) => count > (before.get(kind) ?? 0))
    .map(([kind, count]) => `${count - (before.get(kind) ?? 0)} ${kind}`);
}

/** So many things of each kind keep the event loop alive. */
function active(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
