import type { FakeClock, StoreCall } from '@afield/testing';
import type { Step } from './script.js';

export type StoreFault = Extract<Step, { do: 'store-fault' }>;

/** Makes calls on the local store fail: before they are done, when they are done, or late. */
export class StoreFaults {
  #armed: { fault: StoreFault; skip: number; left: number }[] = [];

  constructor(
    private readonly clock: FakeClock,
    private readonly note: (line: string) => void,
    /** Someone else edits what is contested, now. */
    private readonly edit: () => void,
  ) {}

  arm(fault: StoreFault): void {
    this.#armed.push({ fault, skip: fault.skip, left: fault.times });
  }

  heal(): void {
    this.#armed = [];
  }

  async around<Value>(call: StoreCall, run: () => Promise<Value>): Promise<Value> {
    const fault = call.kind === 'other' ? undefined : this.#next(call);
    this.note(`store ${call.database} ${call.method}${fault === undefined ? '' : ` !${fault.kind}`}`);
    switch (fault?.kind) {
      case 'reject':
        throw gone();
      case 'lost':
        await run();
        throw gone();
      case 'lost-then-edited':
        await run();
        this.edit();
        throw gone();
      case 'slow':
        await new Promise<void>((resolve) => this.clock.setTimer(resolve, fault.delayS * 1000));
        return run();
      case undefined:
        return run();
    }
  }

  #next(call: StoreCall): StoreFault | undefined {
    this.#armed = this.#armed.filter(({ left }) => left > 0);
    const on = call.database.endsWith('-queue') ? 'queue' : 'docs';
    const armed = this.#armed.find(({ fault }) => fault.on === on && fault.call === call.kind);
    if (armed === undefined) return undefined;
    if (armed.skip > 0) {
      armed.skip -= 1;
      return undefined;
    }
    armed.left -= 1;
    return armed.fault;
  }
}

/** What a browser says when its store has lost the connection. */
function gone(): Error {
  return Object.assign(new Error('The database connection is closing.'), { name: 'InvalidStateError' });
}
