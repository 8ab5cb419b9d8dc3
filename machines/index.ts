/** The statecharts and their rules, for drawing, for tests that are generated from them, and for machines of your own. */
export { leaseMachine } from './lease.machine.ts';
export type { LeaseContext, LeaseEvent } from './lease.machine.ts';
export { extend, grant, isCurrent, isExpired, isLive, leaseIdOf, mayExtend } from './lease.rules.ts';
export type { AcquireAsk, ChartLease, Claim } from './lease.rules.ts';
export { leaseLogic } from './lease.logic.ts';
export type { LeaseActorRef, LeaseSnapshot } from './lease.logic.ts';
export type { RegistryActorRef, RegistryInput, RegistrySnapshot } from './registry.logic.ts';
export type { RegistryAnswer, RegistryEvent, RegistryRecord } from './registry.events.ts';
export { keeperMachine } from './keeper.machine.ts';
export type { KeeperContext, KeeperEvent, KeeperInput, KeeperNews } from './keeper.types.ts';
