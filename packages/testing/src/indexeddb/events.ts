type Listener = EventListenerOrEventListenerObject;

/** An event on its way: `deliver` hands it to whoever listens, now or later. Not called: no one hears of it. */
export type Pass = (event: Event, deliver: () => void) => void;

/** The events of each kind of object. */
export const eventsOf = {
  request: ['success', 'error'],
  open: ['success', 'error', 'upgradeneeded', 'blocked'],
  transaction: ['complete', 'abort', 'error'],
  database: ['close', 'versionchange', 'abort', 'error'],
} as const;

/**
 * From now on all events of an object reach its listeners through `pass`. The object stays what it is: only properties of
 * its own are set. Answers with a function that hands them an event that never happened.
 */
export function gated(target: EventTarget, types: readonly string[], pass: Pass): (event: Event) => void {
  let listeners: { readonly type: string; readonly listener: Listener; readonly once: boolean }[] = [];
  const handlers = new Map<string, Listener>();
  const remove = (type: string, listener: Listener): void => {
    listeners = listeners.filter((one) => one.type !== type || one.listener !== listener);
  };
  const add = (type: string, listener: Listener | null, options?: boolean | AddEventListenerOptions): void => {
    if (listener === null || listeners.some((one) => one.type === type && one.listener === listener)) return;
    listeners = [...listeners, { type, listener, once: typeof options === 'object' && options.once === true }];
  };
  const deliver = (event: Event): void => {
    for (const { type, listener, once } of listeners) {
      if (type !== event.type) continue;
      if (once) remove(type, listener);
      if (typeof listener === 'function') listener.call(target, event);
      else listener.handleEvent(event);
    }
  };
  for (const type of types) {
    target.addEventListener(type, (event) => {
      pass(event, () => {
        deliver(event);
      });
    });
    Object.defineProperty(target, `on${type}`, {
      configurable: true,
      // The engine in memory calls what it finds here by itself, past the gate.
      get: () => null,
      set: (handler: Listener | null) => {
        const before = handlers.get(type);
        if (before !== undefined) remove(type, before);
        handlers.delete(type);
        if (handler === null) return;
        // A function of its own: the same one may be added as a listener, too.
        const own: Listener = (event) => {
          if (typeof handler === 'function') handler.call(target, event);
        };
        handlers.set(type, own);
        add(type, own);
      },
    });
  }
  setOwn(target, 'addEventListener', add);
  setOwn(target, 'removeEventListener', remove);
  return deliver;
}

/** An event that never happened, for the listeners of `target`. */
export function eventFor(target: EventTarget, type: string): Event {
  const event = new Event(type, { bubbles: true, cancelable: type === 'error' });
  setOwn(event, 'target', target);
  return event;
}

/** Sets a property of this one object, whatever its class says. */
export function setOwn(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, configurable: true });
}
