/** Errors of the registry and of the rules that the stores share. @type {readonly import('./mutant.mjs').Mutant[]} */
export const registryMutants = of(
  ['test/registry/properties.test.ts'],
  [
    {
      name: 'a live lease is taken over by anybody',
      property: 'A1',
      file: 'machines/lease.rules.ts',
      from: '  if (lease.workerId !== ask.workerId) return false;\n',
      to: '',
    },
    {
      name: 'a grant uses no token up',
      property: 'A2',
      file: 'machines/registry.runs.ts',
      from: 'this.#ownedByToken.add(this.nextToken++, run);',
      to: 'this.#ownedByToken.add(this.nextToken, run);',
    },
    {
      name: 'a restored registry counts by its leases alone',
      property: 'A2',
      file: 'machines/registry.runs.ts',
      from: 'runs.nextToken = record.nextToken;',
      to: 'runs.nextToken = Math.max(1, ...record.leases.map((lease) => lease.fencingToken + 1));',
    },
    {
      name: 'a refusal uses a token',
      property: 'A3',
      file: 'machines/registry.runs.ts',
      from: "if (!taken) return { type: 'lease.refused'",
      to: "if (!taken && this.nextToken++) return { type: 'lease.refused'",
    },
    {
      name: 'expiry is exclusive',
      property: 'A4',
      file: 'machines/lease.rules.ts',
      from: 'return lease.expiresAt <= now;',
      to: 'return lease.expiresAt < now;',
    },
    {
      name: 'a heartbeat revives an expired lease',
      property: 'A6',
      file: 'machines/lease.machine.ts',
      from: `          {
            guard: 'isExpired',
            target: 'expired',
            description: 'Too late: nothing revives a lease.',
            meta: { rule: 'R4' },
          },
`,
      to: '',
    },
    {
      name: 'an expired lease cannot be released',
      property: 'A7',
      file: 'machines/lease.machine.ts',
      from: `        release: {
          guard: 'isCurrent',
          target: 'free',
          actions: 'clear',
          description: 'Late`,
      to: `        release: {
          guard: 'isExpired',
          target: 'free',
          actions: 'clear',
          description: 'Late`,
    },
    {
      name: 'the lease id is not compared',
      property: 'A8',
      file: 'machines/lease.rules.ts',
      from: '    lease.leaseId === claim.leaseId &&\n',
      to: '',
    },
    {
      name: 'a live lease is valid for every token',
      property: 'A8',
      file: 'machines/lease.rules.ts',
      from: '    lease.fencingToken === claim.fencingToken &&\n',
      to: '',
    },
    {
      name: 'a worker extends its lease without having asked for that',
      property: 'A9',
      file: 'machines/lease.rules.ts',
      from: "return ask.reacquire === 'extend' ||",
      to: 'return ask.reacquire !== undefined ||',
    },
    {
      name: 'a time that goes back is taken as it is',
      property: 'A11',
      file: 'machines/registry.runs.ts',
      from: 'if (now > this.latestNow) this.latestNow = now;',
      to: 'this.latestNow = now;',
    },
    {
      name: 'a restored registry does not remember the time',
      property: 'A13',
      file: 'machines/registry.runs.ts',
      from: 'runs.latestNow = record.latestNow ?? Number.NEGATIVE_INFINITY;',
      to: 'runs.latestNow = Number.NEGATIVE_INFINITY;',
    },
    {
      name: 'a token follows 2^53 - 1',
      property: 'A15',
      file: 'machines/registry.runs.ts',
      from: 'if (this.nextToken > Number.MAX_SAFE_INTEGER &&',
      to: 'if (this.nextToken > Number.MAX_VALUE &&',
    },
    {
      name: 'expire tells again of a lease that has lapsed before',
      property: 'A17',
      file: 'machines/registry.runs.ts',
      from: "if (run.step({ type: 'expire', now })) expired.push(lease);",
      to: "if (run.step({ type: 'expire', now })) expired.push(lease, lease);",
    },
    {
      name: 'a run that is free is never forgotten',
      property: 'A18',
      file: 'machines/registry.runs.ts',
      from: 'if (this.#idle.size > IDLE_RUNS)',
      to: 'if (this.#idle.size > Infinity)',
    },
    {
      name: 'a released run stays taken by its token',
      property: 'A19',
      file: 'machines/registry.runs.ts',
      from: `    this.#ownedByToken.delete(fencingToken);
    this.#keepIdle(run);`,
      to: '    this.#keepIdle(run);',
    },
  ],
);

function of(tests, table) {
  return table.map((mutant) => ({ tests, ...mutant }));
}
