/** The JSON schema of the corpus. `examples/python-replay/corpus.schema.json` is this, written down. */

const name = (pattern: string) => ({ type: 'string', pattern }) as const;
const object = <Properties extends object>(properties: Properties, optional: readonly string[] = []) => ({
  type: 'object' as const,
  properties,
  required: Object.keys(properties).filter((key) => !optional.includes(key)),
  additionalProperties: false,
});

const lease = name('^lease-[1-9][0-9]*$');
const leaseOrNull = { oneOf: [lease, { type: 'null' }] } as const;
const after = { $ref: '#/$defs/after' } as const;
const scenarioList = { type: 'array', items: { $ref: '#/$defs/scenario' } } as const;

/** Draft 2020-12. */
export const corpusSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Scenarios of a lease',
  ...object({
    version: { const: 1 },
    about: { type: 'array', items: { type: 'string' } },
    registry: scenarioList,
    store: scenarioList,
  }),
  $defs: {
    scenario: object({
      id: name('^(registry|store)-[0-9]{3}$'),
      title: { type: 'string' },
      rule: { oneOf: [name('^R[1-9]$'), { type: 'null' }] },
      steps: { type: 'array', items: { $ref: '#/$defs/step' } },
    }),
    step: {
      oneOf: [
        object(
          {
            call: { const: 'acquire' },
            worker: { enum: ['worker-a', 'worker-b'] },
            acquisition: name('^acquisition-[1-9][0-9]*$'),
            reacquire: { enum: ['extend', 'refuse'] },
            expect: {
              oneOf: [
                object({ answer: { const: 'granted' }, lease, token: { enum: ['new', 'same'] } }),
                object({ answer: { const: 'held' }, by: lease }),
              ],
            },
            after,
          },
          ['acquisition'],
        ),
        object({
          call: { enum: ['heartbeat', 'release'] },
          claim: object({ lease: leaseOrNull, change: { enum: ['none', 'never-issued', 'another-worker'] } }),
          expect: object({ accepted: { type: 'boolean' } }),
          after,
        }),
        object({ call: { const: 'expire' }, after }),
        object({ call: { const: 'advance' }, ttls: { type: 'number' }, after }),
      ],
    },
    after: object({
      state: { enum: ['free', 'held', 'expired'] },
      lease: leaseOrNull,
      newest: leaseOrNull,
      ttlsLeft: { type: 'number', minimum: 0, maximum: 1 },
    }),
  },
} as const;
