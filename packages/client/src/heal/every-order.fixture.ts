import type { DocumentAction } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import { generationOf } from '../model/revision.js';
import { hashOf } from '../queue/subjects.js';
import { markOf } from './mark.js';
import { afterFailed, regainedIn } from './regained.js';
import { replay } from './replay.js';
import { afterTreatment, losingLeaves, treatmentOf, type Examined, type OwnOperation } from './treatment.js';
import { inOrder, judge, type Leaf } from './tree.js';

/*
 * Every order of events of a few devices that change one document: each runs its operations, heals, removes what has lost,
 * sends to the server and fetches from there, one step at a time, in any order. What a device does about conflicts is decided
 * by the SDK's own functions; only the network and the store are made up.
 */

export interface ScriptedOperation {
  readonly action: DocumentAction;
  readonly content: unknown;
  /** An edit of the app: no operation, so that nobody heals it. */
  readonly isForeign?: boolean;
}

interface Revision {
  readonly parent: string | undefined;
  readonly doc: Doc;
}

/** What one device knows of one of its operations that wrote. */
interface Own {
  readonly place: number;
  readonly revs: readonly string[];
  readonly standing: 'counts' | 'failed' | 'foreign';
}

interface DeviceState {
  /** Names of the revisions that it has. */
  readonly has: ReadonlySet<string>;
  /** How many of its operations it has run. */
  readonly ran: number;
  readonly own: readonly Own[];
  /** Operations that have failed at once, or when they were healed. */
  readonly failures: readonly string[];
}

interface State {
  readonly devices: readonly DeviceState[];
  readonly server: ReadonlySet<string>;
}

/** What is wrong where nothing more happens. */
export interface Found {
  readonly problem: string;
  readonly trail: readonly string[];
}

export interface Explored {
  readonly states: number;
  readonly ends: number;
  /** The longest way from the beginning to an end. */
  readonly longest: number;
  /** The most revisions that one document got. */
  readonly revisions: number;
  readonly problems: readonly Found[];
}

export interface Mistakes {
  /** The device that won heals too: it runs its operation once more on the winner. */
  readonly winnerToo?: boolean;
  /** Losing leaves are removed by whoever sees them. */
  readonly removesAll?: boolean;
  /** A leaf with revisions of several devices is left to the others. */
  readonly marksNothing?: boolean;
  /** What has failed when it was healed stays failed, whatever wins later. */
  readonly regainsNothing?: boolean;
}

const docId = 'd';

/**
 * Goes through every order. `salt` decides which of two revisions of one generation wins: another salt, other winners. Throws
 * when a way does not end: each step must lead to a state that was not there before on that way.
 */
export function everyOrder(
  scripts: readonly (readonly ScriptedOperation[])[],
  seed: Readonly<Record<string, unknown>>,
  salt: string,
  mistakes: Mistakes = {},
  most = 2_000_000,
): Explored {
  const revisions = new Map<string, Revision>();
  const first = written(revisions, undefined, { _id: docId, ...seed }, salt);
  const start: State = {
    server: new Set([first]),
    devices: scripts.map(() => ({ has: new Set([first]), ran: 0, own: [], failures: [] })),
  };
  const world = { scripts, revisions, salt, mistakes };
  const longest = new Map<string, number>();
  const onTheWay = new Set<string>();
  const problems: Found[] = [];
  let ends = 0;
  const trail: string[] = [];

  interface Frame {
    readonly name: string;
    readonly next: readonly (readonly [string, State])[];
    at: number;
    best: number;
  }
  const enter = (state: State): Frame => {
    const name = nameOf(state);
    onTheWay.add(name);
    const next = stepsOf(state, world);
    if (next.length === 0) {
      ends++;
      for (const problem of wrongAtEnd(state, world)) problems.push({ problem, trail: [...trail] });
    }
    return { name, next, at: 0, best: 0 };
  };
  const stack = [enter(start)];
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    const step = frame.next[frame.at++];
    if (step === undefined) {
      stack.pop();
      trail.pop();
      onTheWay.delete(frame.name);
      longest.set(frame.name, frame.best);
      const before = stack.at(-1);
      if (before !== undefined) before.best = Math.max(before.best, frame.best + 1);
      continue;
    }
    const [what, state] = step;
    const name = nameOf(state);
    if (onTheWay.has(name)) throw new Error(`It goes round in circles: ${[...trail.slice(1), what].join(', ')}`);
    const known = longest.get(name);
    if (known !== undefined) {
      frame.best = Math.max(frame.best, known + 1);
      continue;
    }
    if (longest.size + stack.length > most) throw new Error(`More than ${String(most)} states.`);
    if (stack.length > 400) throw new Error(`It does not come to an end: ${trail.slice(-12).join(', ')}`);
    trail.push(what);
    stack.push(enter(state));
  }
  return {
    states: longest.size,
    ends,
    longest: longest.get(nameOf(start)) ?? 0,
    revisions: revisions.size,
    problems,
  };
}

interface World {
  readonly scripts: readonly (readonly ScriptedOperation[])[];
  readonly revisions: Map<string, Revision>;
  readonly salt: string;
  readonly mistakes: Mistakes;
}

function stepsOf(state: State, world: World): (readonly [string, State])[] {
  const steps: (readonly [string, State])[] = [];
  state.devices.forEach((device, at) => {
    const name = String.fromCharCode(97 + at);
    const become = (what: string, next: DeviceState | undefined): void => {
      if (next === undefined) return;
      steps.push([
        `${name} ${what}`,
        { ...state, devices: state.devices.map((one, place) => (place === at ? next : one)) },
      ]);
    };
    become('runs', run(device, at, world));
    become('heals', heal(device, at, world));
    become('removes', remove(device, at, world));
    if (!isSubset(device.has, state.server)) {
      steps.push([`${name} sends`, { ...state, server: union(state.server, device.has) }]);
    }
    if (!isSubset(state.server, device.has)) become('fetches', { ...device, has: union(device.has, state.server) });
  });
  return steps;
}

/** The next operation of its script, on the version that this device sees. */
function run(device: DeviceState, at: number, world: World): DeviceState | undefined {
  const operation = world.scripts[at]?.[device.ran];
  if (operation === undefined) return undefined;
  const examined = examinedOf(device, at, world);
  const [winner] = inOrder(examined.leaves);
  const present = winner === undefined ? undefined : examined.docs.get(winner.rev);
  if (winner === undefined || present === undefined) return undefined;
  const ran = { ...device, ran: device.ran + 1 };
  const { doc, outcomes } = replay(present, [{ ...operation, isBuried: true }]);
  const outcome = outcomes.get(0);
  if (operation.isForeign === true && (winner.deleted || doc === undefined)) return ran;
  if (outcome?.kind === 'failed') return { ...ran, failures: [...device.failures, nameOfOwn(device.ran)] };
  if (doc === undefined) return ran;
  const own = (rev: string): readonly Own[] => [
    ...device.own,
    { place: device.ran, revs: [rev], standing: operation.isForeign === true ? 'foreign' : 'counts' },
  ];
  if (doc._deleted === true) {
    const has = new Set(device.has);
    const judgement = judge(examined.leaves, []);
    for (const rev of judgement === undefined ? [] : losingLeaves(examined, judgement)) has.add(deletion(world, rev));
    const rev = deletion(world, winner.rev, `${String(at)} ${String(device.ran)}`);
    return { ...ran, has: has.add(rev), own: own(rev) };
  }
  const rev = written(world.revisions, winner.rev, doc, `${world.salt} ${String(at)}`);
  return { ...ran, has: new Set([...device.has, rev]), own: own(rev) };
}

/** One look: what stands in the winner after all is applied again, what is buried is run on it. */
function heal(before: DeviceState, at: number, world: World): DeviceState | undefined {
  const device = regain(before, at, world);
  const examined = examinedOf(device, at, world);
  const treatment = treatmentOf(examined);
  if (treatment === undefined && device !== before) return device;
  if (treatment === undefined) return world.mistakes.winnerToo === true ? healWinner(device, at, world) : undefined;
  const { winner } = treatment.judgement;
  const has = new Set(device.has);
  let rev = winner.rev;
  const { doc } = treatment.replay;
  if (doc !== undefined) {
    if (doc._deleted === true) {
      for (const one of losingLeaves(examined, treatment.judgement)) has.add(deletion(world, one));
      rev = deletion(world, winner.rev, `${String(at)} healed`);
    } else rev = written(world.revisions, winner.rev, doc, `${world.salt} ${String(at)}`);
    has.add(rev);
  }
  const after = afterTreatment(examined, treatment, rev);
  const failed = [...treatment.replay.outcomes].flatMap(([place, one]) =>
    one.kind === 'failed' ? (treatment.operations[place] ?? []) : [],
  );
  return {
    ...device,
    has,
    own: device.own.map((one) => {
      const next = after.own.find(({ place }) => place === one.place);
      return next === undefined
        ? one
        : { ...one, revs: next.revs, standing: next.standing === 'failed' ? 'failed' : one.standing };
    }),
    failures: [...device.failures, ...failed.map(({ place }) => nameOfOwn(place))],
  };
}

/** The same device where nothing that has failed stands in the winner. */
function regain(device: DeviceState, at: number, world: World): DeviceState {
  const places = new Set(world.mistakes.regainsNothing === true ? [] : standingOf(device, at, world));
  if (places.size === 0) return device;
  return {
    ...device,
    own: device.own.map((one) => (places.has(one.place) ? { ...one, standing: 'counts' } : one)),
    failures: device.failures.filter((name) => ![...places].some((place) => nameOfOwn(place) === name)),
  };
}

/** Its operations that have failed, and are in the winner's history after all. */
function standingOf(device: DeviceState, at: number, world: World): readonly number[] {
  const { leaves, own } = examinedOf(device, at, world);
  const deletions = afterFailed(leaves, own).filter((rev) => world.revisions.get(rev)?.doc._deleted === true);
  return regainedIn(leaves, own, new Set(deletions)).flatMap((found) => own[found]?.place ?? []);
}

function nameOfOwn(place: number): string {
  return `operation ${String(place)}`;
}

/** The mistake: whoever sees a conflict runs its last operation once more, also when it is in the winner. */
function healWinner(device: DeviceState, at: number, world: World): DeviceState | undefined {
  const examined = examinedOf(device, at, world);
  const judgement = judge(examined.leaves, examined.own);
  const last = device.own.at(-1);
  if (judgement === undefined || judgement.isGone || last === undefined) return undefined;
  if (losingLeaves(examined, judgement).length === 0) return undefined;
  const present = examined.docs.get(judgement.winner.rev);
  if (present === undefined) return undefined;
  const rev = written(world.revisions, judgement.winner.rev, present, `${world.salt} ${String(at)} again`);
  return { ...device, has: new Set([...device.has, rev]) };
}

function remove(device: DeviceState, at: number, world: World): DeviceState | undefined {
  const examined = examinedOf(device, at, world);
  const judgement = judge(examined.leaves, examined.own);
  if (judgement === undefined) return undefined;
  const { removable, markable } = judgement;
  const gone = world.mistakes.removesAll === true ? losingLeaves(examined, judgement) : removable;
  const marks = world.mistakes.marksNothing === true ? [] : markable;
  if (gone.length + marks.length === 0) return undefined;
  const has = new Set(device.has);
  for (const rev of gone) has.add(deletion(world, rev));
  for (const mark of marks) {
    const doc = markOf(docId, mark);
    const rev = doc._rev ?? '';
    world.revisions.set(rev, { parent: mark.ancestors[0], doc });
    has.add(rev);
  }
  return { ...device, has };
}

/** What must be so when every device has everything and none has anything left to do. */
function wrongAtEnd(state: State, world: World): string[] {
  const problems: string[] = [];
  const [first] = state.devices;
  if (first === undefined) return [];
  const sets = [state.server, ...state.devices.map(({ has }) => has)];
  if (sets.some((set) => set.size !== first.has.size)) problems.push('not all have the same revisions');
  const leaves = leavesOf(first.has, world);
  const [winner] = inOrder(leaves);
  if (winner === undefined) return ['there is no revision'];
  const live = leaves.filter(({ deleted }) => !deleted);
  const foreign = state.devices.flatMap(({ own }) =>
    own.flatMap((one) => (one.standing === 'foreign' ? one.revs : [])),
  );
  const won = new Set(winner.ancestors);
  const holdsForeign = ({ ancestors }: Leaf): boolean =>
    ancestors.some((rev) => !won.has(rev) && foreign.includes(rev));
  if (live.some((leaf) => leaf !== winner && !holdsForeign(leaf))) problems.push('a conflict is left');
  for (const rev of foreign) {
    if (!winner.deleted && !live.some(({ ancestors }) => ancestors.includes(rev)))
      problems.push('an edit of the app is lost');
  }
  state.devices.forEach((device, at) => {
    if (device.ran !== world.scripts[at]?.length) problems.push('an operation was not run');
    for (const place of standingOf(device, at, world)) {
      problems.push(`${nameOfOwn(place)} of device ${String.fromCharCode(97 + at)} has failed, and is in the winner`);
    }
    for (const { place, revs, standing } of device.own) {
      const operation = world.scripts[at]?.[place];
      if (standing !== 'counts' || operation === undefined) continue;
      const name = `${nameOfOwn(place)} of device ${String.fromCharCode(97 + at)}`;
      if (!winner.deleted && !revs.some((rev) => winner.ancestors.includes(rev))) problems.push(`${name} is lost`);
      const isDeletion = operation.action.missing === 'applied';
      const later = isDeletion && !winner.deleted ? laterThan(winner, revs, world) : true;
      if (!later) problems.push(`${name} has deleted the document, and it is there`);
    }
  });
  return problems;
}

/** Whether something was made on top of a deletion: the document is there again because someone has made it anew. */
function laterThan(winner: Leaf, revs: readonly string[], world: World): boolean {
  return revs.some((rev) => winner.ancestors.includes(rev) && world.revisions.get(rev)?.doc._deleted === true);
}

interface ExaminedOwn extends OwnOperation {
  readonly place: number;
}

function examinedOf(device: DeviceState, at: number, world: World): Examined<ExaminedOwn> {
  const leaves = leavesOf(device.has, world);
  const docs = new Map(
    leaves.flatMap(({ rev }) => {
      const revision = world.revisions.get(rev);
      return revision === undefined ? [] : [[rev, revision.doc] as const];
    }),
  );
  const own = device.own.flatMap(({ place, revs, standing }): ExaminedOwn[] => {
    const operation = world.scripts[at]?.[place];
    return operation === undefined || standing === 'foreign' ? [] : [{ ...operation, place, revs, standing }];
  });
  return { id: docId, leaves, docs, own };
}

function leavesOf(has: ReadonlySet<string>, { revisions }: World): readonly Leaf[] {
  const parents = new Set([...has].map((rev) => revisions.get(rev)?.parent));
  return [...has].flatMap((rev) => {
    if (parents.has(rev)) return [];
    const ancestors: string[] = [];
    for (let one: string | undefined = rev; one !== undefined; one = revisions.get(one)?.parent) ancestors.push(one);
    return [{ rev, deleted: revisions.get(rev)?.doc._deleted === true, ancestors }];
  });
}

/** A new revision. What is written twice on the same one is one revision. */
function written(revisions: Map<string, Revision>, parent: string | undefined, doc: Doc, salt: string): string {
  const fields = JSON.stringify({ ...doc, _rev: undefined });
  const hash = `${hashed(`${salt} ${parent ?? ''} ${fields}`)}${hashed(`${fields} ${parent ?? ''} ${salt}`)}`;
  const rev = `${String(generationOf(parent) + 1)}-${hash}`;
  revisions.set(rev, { parent, doc: { ...doc, _rev: rev } });
  return rev;
}

function deletion({ revisions, salt }: World, parent: string, by = ''): string {
  return written(revisions, parent, { _id: docId, _deleted: true }, `${salt} ${by}`);
}

function hashed(text: string): string {
  return hashOf(text).toString(16).padStart(8, '0');
}

function nameOf({ server, devices }: State): string {
  const set = (one: ReadonlySet<string>): string => [...one].sort().join();
  return [
    set(server),
    ...devices.map(({ has, ran, own, failures }) =>
      [
        set(has),
        String(ran),
        own.map(({ revs, standing }) => `${standing}:${revs.join()}`).join(' '),
        failures.join(),
      ].join('/'),
    ),
  ].join('|');
}

function isSubset(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  for (const one of a) if (!b.has(one)) return false;
  return true;
}

function union(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...a, ...b]);
}
