/** V6. `LESSOR_SEEDS` worlds from the seed `LESSOR_SEED` on, of ten virtual minutes each. What must be found takes fewer. */
import { afterEach, describe, expect, it } from 'vitest';
import { simulate, type Figures, type Simulation } from './simulate.ts';

const SEEDS = Number(process.env['LESSOR_SEEDS'] ?? 32);
const FIRST = Number(process.env['LESSOR_SEED'] ?? 1);
const SECONDS = 600;

const unhandled: unknown[] = [];
process.on('unhandledRejection', (error) => unhandled.push(error));
afterEach(() => {
  if (unhandled.length > 0) throw new AggregateError(unhandled.splice(0), 'Thrown from the background');
});

describe('V6 workers with the shipped manager, in virtual time', { timeout: 3_600_000 }, () => {
  it('C1-C5 no two workers believe, no stale write lands, and nothing is left behind', async () => {
    const figures = await simulateAll({});
    expect(figures).toMatchObject({ overlaps: 0, stale: 0, wrong: [] });
    expect(figures.grants * figures.refused * figures.losses * figures.kills).toBeGreaterThan(0);
  });

  it('a seed determines all that happens', async () => {
    const [one, other] = [await simulate({ seed: 7, seconds: 100 }), await simulate({ seed: 7, seconds: 100 })];
    expect(one).toEqual(other);
  });

  it('B17 no stale write lands where clocks differ by more than the managers count with', async () => {
    const figures = await simulateAll({ drift: 0.3 }, SEEDS / 2);
    expect(figures).toMatchObject({ stale: 0 });
    expect(figures.overlaps, 'two workers that believe, which it must find').toBeGreaterThan(0);
  });

  it('B17 no stale write lands where processes share a worker id and take over from each other', async () => {
    expect(await simulateAll({ reacquire: 'extend' }, SEEDS / 2)).toMatchObject({ stale: 0 });
  });

  it('finds stale writes where nothing is fenced', async () => {
    expect((await simulateAll({ fenced: false }, SEEDS / 8)).stale).toBeGreaterThan(0);
  });

  it('B12 finds two workers that believe where a repeated acquire is answered and not extended', async () => {
    expect((await simulateAll({ answersRepeatsFromMemory: true }, SEEDS / 4)).overlaps).toBeGreaterThan(0);
  });
});

async function simulateAll(simulation: Partial<Simulation>, seeds = SEEDS): Promise<Figures> {
  const sum: Partial<Figures> & { wrong: string[] } = { wrong: [] };
  for (let seed = FIRST; seed < FIRST + seeds; seed += 1) {
    const { wrong, ...figures } = await simulate({ seed, seconds: SECONDS, ...simulation });
    for (const [name, figure] of Object.entries(figures) as [Exclude<keyof Figures, 'wrong'>, number][]) {
      sum[name] = (sum[name] ?? 0) + figure;
    }
    sum.wrong.push(...wrong.map((what) => `seed ${seed}: ${what}`));
  }
  const hours = ((seeds * SECONDS) / 3600).toFixed(1);
  console.log(
    `${JSON.stringify(simulation)}, seeds ${FIRST} to ${FIRST + seeds - 1}, ${hours} h:`,
    JSON.stringify(sum),
  );
  return sum as Figures;
}
