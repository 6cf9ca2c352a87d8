import { errorOf, type StoreError } from '../store-faults.js';
import { eventFor, eventsOf, gated, setOwn, type Pass } from './events.js';
import type { MadeTransaction, RequestMade } from './layer.js';

/** A transaction whose events and requests can be changed on their way to whoever made it. */
export class FaultyTransaction {
  readonly transaction: IDBTransaction;
  readonly probe: () => IDBRequest;
  /** Hands an event that never happened to the listeners of the transaction. */
  readonly emit: (event: Event) => void;
  pass: Pass = (_event, deliver) => {
    deliver();
  };
  request: (request: RequestMade, make: () => IDBRequest) => IDBRequest = (_request, make) => make();

  constructor({ transaction, probe }: MadeTransaction) {
    this.transaction = transaction;
    this.probe = probe;
    this.emit = gated(transaction, eventsOf.transaction, (event, deliver) => {
      this.pass(event, deliver);
    });
  }
}

/** Each read fails with this error, and the transaction with it. */
export function failReads(faulty: FaultyTransaction, error: StoreError): void {
  faulty.request = (_request, make) => failRequest(faulty, make(), error);
}

/** All its requests succeed; when it would be committed it aborts with this error. */
export function abortAtTheEnd(faulty: FaultyTransaction, error: StoreError): void {
  const { transaction, probe } = faulty;
  let activity = 0;
  /* It would be committed when no request is left. A request of our own comes after all that were made before; one more,
     since whoever heard of those may have made new ones. */
  const probeTwice = (seen: number, again: boolean): void => {
    ifActive(() => {
      probe().addEventListener('success', () => {
        if (seen !== activity) return;
        if (again) {
          probeTwice(seen, false);
          return;
        }
        setOwn(transaction, 'error', errorOf(error));
        transaction.abort();
      });
    });
  };
  const noteActivity = (): void => {
    activity += 1;
    probeTwice(activity, true);
  };
  setOwn(transaction, 'commit', () => undefined);
  noteActivity();
  faulty.request = (_request, make) => {
    const request = make();
    for (const type of eventsOf.request) request.addEventListener(type, noteActivity);
    return request;
  };
}

/** It is committed, and its end is told as an abort with this error. */
export function failAfterCommit(faulty: FaultyTransaction, error: StoreError): void {
  const { transaction } = faulty;
  faulty.pass = ({ type }, deliver) => {
    if (type !== 'complete') {
      deliver();
      return;
    }
    setOwn(transaction, 'error', errorOf(error));
    faulty.emit(eventFor(transaction, 'abort'));
  };
}

/** Its end is never heard of. Answers with a function that carries out, late, what was asked of it. */
export function hang(faulty: FaultyTransaction): (late: IDBTransaction) => void {
  const asked: { readonly given: RequestMade; readonly emit: (event: Event) => void; readonly request: IDBRequest }[] =
    [];
  doom(faulty);
  faulty.pass = () => undefined;
  faulty.request = (given, make) => {
    const request = make();
    asked.push({ given, request, emit: gated(request, eventsOf.request, () => undefined) });
    return request;
  };
  return (late) => {
    const again = ({ store, index, method, args }: RequestMade): IDBRequest => {
      const source = index === undefined ? late.objectStore(store) : late.objectStore(store).index(index);
      return Reflect.apply(Reflect.get(source, method) as () => IDBRequest, source, args);
    };
    // Whoever waits for an answer within the transaction may ask for more, or abort it.
    faulty.request = again;
    setOwn(faulty.transaction, 'abort', () => {
      late.abort();
    });
    setOwn(faulty.transaction, 'commit', () => {
      late.commit();
    });
    for (const { given, request, emit } of asked) {
      const answer = again(given);
      answer.addEventListener('success', () => {
        setOwn(request, 'result', answer.result);
        setOwn(request, 'error', null);
        emit(eventFor(request, 'success'));
      });
    }
  };
}

/** Aborts a transaction as soon as the engine comes to it: until then it takes requests. */
export function doom({ transaction, probe }: MadeTransaction): void {
  probe().addEventListener('success', () => {
    ifActive(() => {
      transaction.abort();
    });
  });
}

/**
 * Lets a request fail: its success is told as an error, and then the transaction aborts, unless whoever hears of it
 * prevents that.
 */
export function failRequest(faulty: FaultyTransaction, request: IDBRequest, error: StoreError): IDBRequest {
  // A request that fails undoes a transaction that was told to commit meanwhile, too; an abort by hand could not.
  setOwn(faulty.transaction, 'commit', () => undefined);
  const emit = gated(request, eventsOf.request, ({ type }, deliver) => {
    if (type === 'error') {
      deliver();
      return;
    }
    const cause = errorOf(error);
    setOwn(request, 'error', cause);
    setOwn(request, 'result', undefined);
    const event = eventFor(request, 'error');
    emit(event);
    faulty.emit(event);
    if (event.defaultPrevented) return;
    // As in a browser: whoever listens to the transaction hears of the error before it has one itself.
    setOwn(faulty.transaction, 'error', cause);
    ifActive(() => {
      faulty.transaction.abort();
    });
  });
  return request;
}

/** A transaction that has ended meanwhile needs nothing more. */
export function ifActive(run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}
