import { describe, expect, it } from 'vitest';
import { FakeClock } from './fake-clock.js';
import { faultyFetch, type FetchRule } from './faulty-fetch.js';

const address = 'http://couch.test/records/_bulk_docs';
const write: RequestInit = { method: 'POST', body: '{"docs":[]}' };

/** A server that counts the work it does. */
function server() {
  const done: string[] = [];
  const real: typeof fetch = (input, init) => {
    done.push(`${init?.method ?? 'GET'} ${String(input)}`);
    return Promise.resolve(new Response('[{"ok":true,"id":"a","rev":"1-x"}]', { status: 201, headers: { etag: 'x' } }));
  };
  return { done, real };
}

async function answerTo(rule: FetchRule): Promise<{ status: number; text: string; work: number; answer: Response }> {
  const { done, real } = server();
  const answer = await faultyFetch(real, [rule]).fetch(address, write);
  return { status: answer.status, text: await answer.text(), work: done.length, answer };
}

describe('faultyFetch', () => {
  it('passes everything on where no rule is about it', async () => {
    const { done, real } = server();
    const { fetch, requests } = faultyFetch(real, [{ when: { method: 'PUT' }, do: { type: 'network-error' } }]);
    expect((await fetch(address, write)).status).toBe(201);
    expect(done).toEqual([`POST ${address}`]);
    expect(requests).toEqual([
      { method: 'POST', origin: 'http://couch.test', path: '/records/_bulk_docs', faults: [] },
    ]);
  });

  it.each([
    ['chromium', 'Failed to fetch'],
    ['firefox', 'NetworkError when attempting to fetch resource.'],
    ['webkit', 'Load failed'],
  ] as const)('fails as %s says it, without the server knowing of it', async (engine, message) => {
    const { done, real } = server();
    const { fetch } = faultyFetch(real, [{ do: { type: 'network-error', engine } }]);
    const error: unknown = await fetch(address, write).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message });
    expect(done).toEqual([]);
  });

  it('loses the answer after the server did the work', async () => {
    const { done, real } = server();
    const { fetch } = faultyFetch(real, [{ do: { type: 'network-error', commit: true } }]);
    await expect(fetch(address, write)).rejects.toThrow(TypeError);
    expect(done).toHaveLength(1);
  });

  it('never answers until the caller gives up, and then rejects with the reason', async () => {
    const { real } = server();
    const { fetch } = faultyFetch(real, [{ do: { type: 'no-answer' } }]);
    const giveUp = new AbortController();
    let settled = false;
    const asked = fetch(address, { ...write, signal: giveUp.signal }).finally(() => (settled = true));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(settled).toBe(false);
    giveUp.abort();
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('answers with any status, headers and body', async () => {
    const busy = await answerTo({
      do: { type: 'answer', status: 503, headers: { 'retry-after': '7' }, body: { error: 'busy', reason: 'later' } },
    });
    expect(busy).toMatchObject({ status: 503, text: '{"error":"busy","reason":"later"}', work: 0 });
    expect(busy.answer.headers.get('retry-after')).toBe('7');
    expect(busy.answer.headers.get('content-type')).toBe('application/json');
    expect(await answerTo({ do: { type: 'answer', status: 204 } })).toMatchObject({ status: 204, text: '' });
  });

  it('answers with the page of a hotspot', async () => {
    const page = await answerTo({ do: { type: 'captive-portal' } });
    expect(page).toMatchObject({ status: 200, work: 0 });
    expect(page.text).toContain('<!doctype html>');
    expect(page.answer.headers.get('content-type')).toContain('text/html');
  });

  it('empties or cuts the true answer', async () => {
    expect(await answerTo({ do: { type: 'empty' } })).toMatchObject({ status: 201, text: '', work: 1 });
    const half = await answerTo({ do: { type: 'cut', share: 0.5 } });
    expect(half).toMatchObject({ status: 201, text: '[{"ok":true,"id":', work: 1 });
    expect(half.answer.headers.get('etag')).toBe('x');
    const broken = answerTo({ do: { type: 'cut', share: 0.5, then: 'error' } });
    await expect(broken).rejects.toThrow(TypeError);
  });

  it('acts by method, path, the how-manieth and how often', async () => {
    const { real } = server();
    const rules: FetchRule[] = [
      { when: { method: ['GET', 'HEAD'], path: '/a*z' }, do: { type: 'answer', status: 500 } },
      { when: { path: '/once', nth: 2 }, do: { type: 'answer', status: 501 } },
      { when: { path: '/some', fromNth: 2, times: 2 }, do: { type: 'answer', status: 502 } },
    ];
    const { fetch, requests } = faultyFetch(real, rules);
    const statuses = async (paths: string[], init?: RequestInit): Promise<number[]> => {
      const seen: number[] = [];
      for (const path of paths) seen.push((await fetch(`http://couch.test${path}`, init)).status);
      return seen;
    };
    expect(await statuses(['/a/b/z', '/ab', '/a+z?x=/b'])).toEqual([500, 201, 500]);
    expect(await statuses(['/az'], { method: 'POST' })).toEqual([201]);
    expect(await statuses(['/once', '/once', '/once'])).toEqual([201, 501, 201]);
    expect(await statuses(['/some', '/some', '/some', '/some'])).toEqual([201, 502, 502, 201]);
    expect(requests[2]).toEqual({ method: 'GET', origin: 'http://couch.test', path: '/a+z', faults: ['answer'] });
  });

  it('is switched off and on, and a rule is taken away', async () => {
    const { real } = server();
    const network = faultyFetch(real);
    const outage = network.add({ do: { type: 'network-error' } });
    await expect(network.fetch(address)).rejects.toThrow();
    network.enabled = false;
    expect((await network.fetch(address)).status).toBe(201);
    network.enabled = true;
    await expect(network.fetch(address)).rejects.toThrow();
    outage();
    expect((await network.fetch(address)).status).toBe(201);
    network.add({ do: { type: 'network-error' } });
    network.clear();
    expect((await network.fetch(address)).status).toBe(201);
  });

  it('delays a request, or with `commit` its answer, on the clock that it is given', async () => {
    const { done, real } = server();
    const clock = new FakeClock(() => new Promise((resolve) => setImmediate(resolve)));
    const network = faultyFetch(real, [{ when: { nth: 1 }, do: { type: 'delay', ms: 5000 } }], { clock });
    network.add({ when: { nth: 2 }, do: { type: 'delay', ms: 5000, commit: true } });
    const answered: string[] = [];
    void network.fetch(address).then(() => answered.push('request delayed'));
    void network.fetch(address).then(() => answered.push('answer delayed'));
    await clock.advance(4999);
    expect([answered.length, done.length]).toEqual([0, 1]);
    await clock.advance(1);
    expect(answered).toHaveLength(2);
    expect(done).toHaveLength(2);
  });

  it('holds an answer until the rule is taken away, and another rule still acts', async () => {
    const { done, real } = server();
    const network = faultyFetch(real, [{ do: { type: 'answer', status: 409, commit: true } }]);
    const release = network.add({ do: { type: 'hold', commit: true } });
    let status = 0;
    const asked = network.fetch(address).then((answer) => (status = answer.status));
    await new Promise((resolve) => setImmediate(resolve));
    expect([status, done.length]).toEqual([0, 1]);
    release();
    await asked;
    expect([status, done.length]).toEqual([409, 1]);
  });
});
