import type { InFlight } from '../in-flight.js';
import { layered } from './layer.js';

/**
 * Openings, deletions and transactions count as under way until they end; those that others block do not. `connections`
 * gets each connection that is made.
 */
export function trackedIndexedDB(
  factory: IDBFactory,
  inFlight: InFlight,
  connections: { add(connection: IDBDatabase): unknown } = new Set(),
): IDBFactory {
  const track = (request: IDBOpenDBRequest): IDBOpenDBRequest => {
    let leave = inFlight.enter();
    const left = (): void => {
      leave();
    };
    request.addEventListener('blocked', left);
    request.addEventListener('upgradeneeded', () => {
      leave();
      leave = inFlight.enter();
    });
    request.addEventListener('success', left);
    request.addEventListener('error', left);
    return request;
  };
  const tracked = layered(factory, {
    open: (_call, make) => track(make()),
    connected: (connection) => {
      connections.add(connection);
    },
    transaction: (_call, make) => {
      const { transaction } = make();
      const leave = inFlight.enter();
      transaction.addEventListener('complete', leave);
      transaction.addEventListener('abort', leave);
      return transaction;
    },
  });
  return { ...tracked, deleteDatabase: (name) => track(tracked.deleteDatabase(name)) };
}
