/** For tests: the kit that holds a store to the contract, and the scenarios that are generated from the lease machine. */
export { storeRules, testLeaseStore } from './store-suite.ts';
export type { SkippedRule, StoreHarness, TestFunction, TestRunner } from './harness.ts';
export { FaultyStore } from './faulty-store.ts';
export type { FaultyCall, Misfortune } from './faulty-store.ts';
export { corpus, corpusMarkdown } from './corpus.ts';
export type { Corpus } from './corpus.ts';
export { corpusSchema } from './corpus-schema.ts';
export { scenarios } from './scenarios.ts';
export type { ScenarioKind } from './environment.ts';
export { playScenario } from './play.ts';
export type { Observation, Subject, SubjectAsk, SubjectClaim } from './play.ts';
export type {
  AcquireStep,
  AdvanceStep,
  After,
  ClaimChange,
  ClaimStep,
  ExpireStep,
  Scenario,
  Step,
  Worker,
} from './scenario.ts';
