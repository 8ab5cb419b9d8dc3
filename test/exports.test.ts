/** The public API: a change of these lists is a change for users, and belongs in the changelog. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const API: Record<string, { readonly values: string; readonly types: string }> = {
  'src/index.ts': {
    values: `
      ConflictError FencedCommands fromHold HeldLease inspectLeases isLeaseError LeaseError LeaseLostError LeaseManager
      LeaseNotAvailableError LeaseRegistry MemoryStore migratePostgres openSession openStore OutcomeUnknownError PostgresStore redisFunctionLibrary RedisStore
      registryLogic RunSession Session SqliteStore StateLostError StoreUnavailableError UnfencedRunError
    `,
    types: `
      AcquireOptions AcquireRequest AcquireResult CallOptions Clock CommitRequest DocumentStore Durability
      Fence FencedExecOptions FencedStore FenceTableColumns FromHoldInput FromHoldOutput FromHoldWork
      GrantedResult GuardedLease HeldResult Holder InspectLeasesOptions Inspector Isolation Json Lease
      LeaseActorRef LeaseErrorCode LeaseLostOptions LeaseManagerOptions LeaseRecord LeaseRef
      LeaseRegistryOptions LeaseSnapshot LeaseStore ListQuery LostReason ManagerEvents MemoryStoreOptions
      MigrateOptions Migration OpenRequest OpenStoreOptions PostgresClient PostgresPool PostgresStatement
      PostgresStoreOptions PostgresTransaction Reacquire RedisClient RedisCommand RedisStoreOptions
      RegistryActorRef RegistryAnswer RegistryEvent RegistryEvents RegistryInput RegistryRecord
      RegistrySnapshot ReleaseRequest RenewResult RevokedLease RevokeReason RunChange RunDocument RunState
      SessionOptions SqliteStoreOptions StoredLease TransactionOptions TransactionPool TransactionWork
      TryAcquireOptions Work
    `,
  },
  'machines/index.ts': {
    values: `
      extend grant isCurrent isExpired isLive keeperMachine leaseIdOf leaseLogic leaseMachine mayExtend
    `,
    types: `
      AcquireAsk ChartLease Claim KeeperContext KeeperEvent KeeperInput KeeperNews LeaseActorRef
      LeaseContext LeaseEvent LeaseSnapshot RegistryActorRef RegistryAnswer RegistryEvent RegistryInput
      RegistryRecord RegistrySnapshot
    `,
  },
  'src/stores/for-authors.ts': {
    values: `
      checkAcquireRequest checkListQuery checkReadRequest checkReleaseRequest checkRenewRequest checkRevokeRequest
      isExpired leaseIdOf lostReason names nextFencingToken
    `,
    types: `
      NewestLease ShownLease
    `,
  },
  'src/testing/index.ts': {
    values: `
      corpus corpusMarkdown corpusSchema FaultyStore playScenario scenarios storeRules testLeaseStore
    `,
    types: `
      AcquireStep AdvanceStep After ClaimChange ClaimStep Corpus ExpireStep FaultyCall Misfortune
      Observation Scenario ScenarioKind SkippedRule Step StoreHarness Subject SubjectAsk SubjectClaim
      TestFunction TestRunner Worker
    `,
  },
};

interface Export {
  readonly name: string;
  readonly typeOnly: boolean;
  /** The file that it comes from. */
  readonly file: string;
}

describe.each(Object.keys(API))('%s', (entry) => {
  it('exports these values and no others', async () => {
    const expected = words(API[entry]?.values);
    expect(
      exportsOf(entry)
        .filter(({ typeOnly }) => !typeOnly)
        .map(({ name }) => name),
    ).toEqual(expected);
    const module = (await import(join(ROOT, entry))) as object;
    expect(Object.keys(module).toSorted(byName)).toEqual(expected);
  });

  it('exports these types and no others', () => {
    expect(
      exportsOf(entry)
        .filter(({ typeOnly }) => typeOnly)
        .map(({ name }) => name),
    ).toEqual(words(API[entry]?.types));
  });

  it('has a documentation comment on each of them', () => {
    expect(
      exportsOf(entry)
        .filter((found) => !isDocumented(found))
        .map(({ name, file }) => `${name} in ${file}`),
    ).toEqual([]);
  });

  it('only re-exports, by name', () => {
    const rest = text(entry)
      .replaceAll(EXPORT, '')
      .replaceAll(/\/\*\*[\s\S]*?\*\//g, '')
      .trim();
    expect(rest).toBe('');
  });
});

const EXPORT = /^export (type )?\{([^}]*)\} from '([^']+)';$/gm;

function exportsOf(entry: string): Export[] {
  const found = [...text(entry).matchAll(EXPORT)].flatMap(([, type, names = '', from = '']) =>
    names
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean)
      .map((name) => ({
        name,
        typeOnly: type !== undefined,
        file: join(dirname(entry), from),
      })),
  );
  return found.toSorted((a, b) => byName(a.name, b.name));
}

/** Whether a comment of the documentation kind stands right above the declaration. */
function isDocumented({ name, file }: Export): boolean {
  const kinds = String.raw`(?:abstract class|class|interface|type|const|async function\*?|function\*?)`;
  return new RegExp(String.raw`\*/\s*export (?:declare )?${kinds} ${name}\b`).test(text(file));
}

function text(file: string): string {
  return existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8') : '';
}

function words(list = ''): string[] {
  return list.trim().split(/\s+/).filter(Boolean);
}

function byName(a: string, b: string): number {
  return a.toLowerCase() < b.toLowerCase() ? -1 : 1;
}
