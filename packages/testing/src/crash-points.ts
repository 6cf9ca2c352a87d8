import { FakeDevice, type FakeDeviceOptions } from './fake-device.js';
import { never, type FakeProcess } from './fake-process.js';
import type { WatchedCall } from './watched-pouch.js';

/** What a scenario gets: a process of a device, for `createClient({ PouchDB, environment, … })`. */
export interface CrashProcess extends Pick<FakeProcess, 'PouchDB' | 'fetch' | 'environment'> {
  readonly device: FakeDevice;
}

/** Where the process died. */
export interface CrashPoint {
  /** The call of the process, from 1. */
  readonly call: number;
  /** Before the call was carried out; after it, with its answer lost; `end`: not at all, the scenario came to its end. */
  readonly when: 'before' | 'after' | 'end';
  /** Such as `bulkDocs records-afield-queue`, `write records-afield-index-…` or `POST /records/_bulk_docs`; empty at the `end`. */
  readonly what: string;
}

export interface CrashOptions extends FakeDeviceOptions {
  /** Before each try: a fresh server, documents. Nothing dies here. */
  readonly prepare?: (process: CrashProcess) => Promise<unknown>;
  /** After each death: open the client anew, let it come to its end, and throw when something is not as it should be. */
  readonly check: (process: CrashProcess, point: CrashPoint) => Promise<unknown>;
  /** Only every so manieth call of the scenario is tried. Default: 1. */
  readonly every?: number;
  /** How much time of the device a scenario or a check may take. Milliseconds; default: an hour. */
  readonly withinMs?: number;
}

export interface CrashReport {
  /** How many deaths were tried. */
  readonly points: number;
  /** Calls on stores, transactions of IndexedDB and requests that the scenario makes when it does not die. */
  readonly calls: number;
  readonly tried: readonly CrashPoint[];
}

/** The scenario or its check failed; `cause` is what it threw. */
export class CrashPointError extends Error {
  readonly code = 'crash_point';
  constructor(
    readonly point: CrashPoint,
    cause: unknown,
  ) {
    const where =
      point.when === 'end' ? 'without any death' : `${point.when} call ${String(point.call)} (${point.what})`;
    super(`${where}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'CrashPointError';
  }
}

/**
 * Runs a scenario again and again on fresh devices, and kills its process before and after each call on a store, each
 * transaction of IndexedDB and each request, one a time; then the caller checks what a new process makes of it. First it is run without a death.
 * @throws CrashPointError at the first point where the scenario or the check fails.
 */
export async function crashPoints(
  run: (process: CrashProcess) => Promise<unknown>,
  options: CrashOptions,
): Promise<CrashReport> {
  const tried: CrashPoint[] = [];
  const { calls } = await attempt(run, options, Infinity, 'before');
  for (let call = 1; call <= calls; call += options.every ?? 1) {
    for (const when of ['before', 'after'] as const) {
      const { point } = await attempt(run, options, call, when);
      if (point.when !== 'end') tried.push(point);
    }
  }
  return { points: tried.length, calls, tried };
}

async function attempt(
  run: (process: CrashProcess) => Promise<unknown>,
  { prepare, check, withinMs, ...given }: CrashOptions,
  deadlyCall: number,
  when: 'before' | 'after',
): Promise<{ calls: number; point: CrashPoint }> {
  const device = new FakeDevice(given);
  const until = async (promise: Promise<unknown>): Promise<void> => void (await device.until(promise, withinMs));
  const scripted = ({ PouchDB, fetch, environment }: FakeProcess): CrashProcess => ({
    PouchDB,
    fetch,
    environment,
    device,
  });
  let point: CrashPoint = { call: 0, when: 'end', what: '' };
  try {
    if (prepare !== undefined) {
      const before = device.process();
      await until(prepare(scripted(before)));
      before.kill();
    }
    const dying = new DyingProcess(device, deadlyCall, when);
    await until(Promise.race([run(scripted(dying.process)), dying.died]));
    dying.process.kill();
    point = dying.point;
    await until(check(scripted(device.process()), point));
    return { calls: dying.calls, point };
  } catch (error) {
    throw new CrashPointError(point, error);
  } finally {
    await device.dispose();
  }
}

/** A process that dies at one of its calls. */
class DyingProcess {
  readonly process: FakeProcess;
  readonly died: Promise<void>;
  calls = 0;
  point: CrashPoint;
  #noteDeath = (): void => undefined;

  constructor(
    device: FakeDevice,
    readonly deadlyCall: number,
    readonly when: 'before' | 'after',
  ) {
    this.point = { call: 0, when: 'end', what: '' };
    this.died = new Promise((resolve) => (this.#noteDeath = resolve));
    const onCall = <T>({ method, database }: WatchedCall, carryOut: () => Promise<T>): Promise<T> =>
      this.#around(`${method} ${database}`, carryOut);
    const numbers = new WeakMap<object, number>();
    this.process = device.process({
      indexedDB: (call, moment) => {
        const number = numbers.get(call) ?? (this.calls += 1);
        numbers.set(call, number);
        if (number !== this.deadlyCall || (moment === 'before') !== (this.when === 'before')) return;
        this.#end(number, `${call.call} ${call.database}`);
      },
      call: onCall,
      callOfPass: onCall,
      request: ({ method, path }, send) => this.#around(`${method} ${path}`, send),
    });
  }

  async #around<T>(what: string, carryOut: () => Promise<T>): Promise<T> {
    this.calls += 1;
    const call = this.calls;
    if (call !== this.deadlyCall) return carryOut();
    if (this.when === 'before') return this.#die(call, what);
    try {
      await carryOut();
    } catch {
      // Whether it worked or not, no one learns of it.
    }
    return this.#die(call, what);
  }

  #die<T>(call: number, what: string): Promise<T> {
    this.#end(call, what);
    return never();
  }

  #end(call: number, what: string): void {
    this.point = { call, when: this.when, what };
    this.process.kill();
    this.#noteDeath();
  }
}
