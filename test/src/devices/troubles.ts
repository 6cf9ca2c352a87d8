import type { FetchFault, FetchRule } from '@afield/testing';
import type { TestDevice } from './device.js';
import type { Random } from './random.js';

/** What may happen to a device. */
const kinds = { offline: 5, fault: 9, kill: 5, close: 1 };

/** Something happens to a device, or is about to. `now` is the time of the test, in milliseconds. */
export function trouble(random: Random, device: TestDevice, now: number): string {
  const kind = random.weighted(kinds);
  switch (kind) {
    case 'offline': {
      const forS = random.between(30, 3600);
      goOffline(device, random.isTrue(0.7));
      device.onlineAt = now + forS * 1000;
      return `offline for ${String(forS)} s`;
    }
    case 'fault': {
      const rule = randomRule(random);
      device.device.network.add(rule);
      return JSON.stringify(rule);
    }
    case 'kill':
      device.killSoon(random.between(0, 40), random.isTrue(0.5));
      device.openAt = now + random.between(1, 900) * 1000;
      return 'to be killed';
    case 'close':
      device.kill();
      device.openAt = now + random.between(60, 7200) * 1000;
      return 'closed for long';
  }
}

/** Requests fail; whether the browser knows it is another matter. */
function goOffline({ device }: TestDevice, isKnown: boolean): void {
  device.network.add({ do: { type: 'network-error' } });
  if (isKnown) device.connectivity.set(false);
}

/** The network is whole again. */
export function goOnline(testDevice: TestDevice): void {
  testDevice.onlineAt = undefined;
  testDevice.device.network.clear();
  testDevice.device.connectivity.set(true);
}

function randomRule(random: Random): FetchRule {
  const commit = random.isTrue(0.5);
  const faults: readonly FetchFault[] = [
    { type: 'network-error', commit },
    { type: 'answer', status: 503, body: { error: 'service_unavailable', reason: 'made up' }, commit },
    { type: 'answer', status: 500, body: { error: 'internal_server_error', reason: 'made up' }, commit },
    { type: 'cut', share: random.next() * 0.99, then: random.isTrue(0.5) ? 'end' : 'error' },
    { type: 'empty' },
    { type: 'captive-portal' },
    { type: 'no-answer', commit },
    { type: 'delay', ms: random.between(1, 50_000), commit },
  ];
  const path = random.oneOf(paths);
  const fromNth = random.between(1, 3);
  return {
    when: { ...(path === undefined ? {} : { path }), fromNth, times: random.between(1, 4) },
    do: random.oneOf(faults),
  };
}

const paths = [undefined, '/_bulk_docs', '/_revs_diff', '/_changes', '/_bulk_get', '/_local/*'];
