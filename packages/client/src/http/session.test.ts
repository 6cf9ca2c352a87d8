import { beforeEach, describe, expect, it } from 'vitest';
import type { Credentials } from '../model/client.js';
import { SignInRequiredError } from '../model/errors.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { Session, type SignInNews } from './session.js';

describe('the session', () => {
  let clock: ManualClock;
  let asked: ('first' | 'refused')[];
  let answers: ((credentials: Credentials | Error) => void)[];
  let session: Session;
  let changes: number;
  let warnings: string[];

  beforeEach(() => {
    clock = new ManualClock();
    asked = [];
    answers = [];
    changes = 0;
    warnings = [];
    session = new Session(
      {
        credentials: (why) => {
          asked.push(why);
          return new Promise((resolve, reject) => {
            answers.push((answer) => {
              if (answer instanceof Error) reject(answer);
              else resolve(answer);
            });
          });
        },
      },
      clock,
      () => changes++,
      (line) => warnings.push(line),
    );
  });
  const turn = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve));
  const answer = async (credentials: Credentials | Error): Promise<void> => {
    answers.shift()?.(credentials);
    await turn();
  };
  const token = (value: string): Credentials => ({ type: 'bearer', token: value });
  const basic = (username: string, password: string): Credentials => ({ type: 'basic', username, password });

  it('R12 asks the app before the first request, once for all that ask at the same time', async () => {
    expect(session.isReady()).toBe(false);
    expect(session.isReady()).toBe(false);
    expect(asked).toEqual(['first']);
    await answer(token('one'));
    expect(changes).toBe(1);
    expect(session.isReady()).toBe(true);
    expect((await session.signIn()).headers).toEqual({ authorization: 'Bearer one' });
  });

  it('R12 R15 credentials that were refused within the minute are no end: the app may be asked again later', async () => {
    session.isReady();
    await answer(token('old'));
    session.refuse(await session.signIn(), 'unauthorized');
    await answer(token('newer'));
    session.refuse(await session.signIn(), 'unauthorized');
    expect(asked).toEqual(['first', 'refused']);
    expect(session.askFailed).toBe(true);
    clock.advance(60_000);
    session.reconsider();
    expect(asked).toEqual(['first', 'refused', 'refused']);
    await answer(token('newest'));
    expect(session.isReady()).toBe(true);
    expect(session.askFailed).toBe(false);
  });

  it('R12 a refusal asks once, in one flight, and goes on when fresh credentials come', async () => {
    session.isReady();
    await answer(token('old'));
    const used = await session.signIn();
    session.refuse(used, 'unauthorized');
    session.refuse(used, 'unauthorized');
    expect(session.isRefused).toBe(true);
    expect(asked).toEqual(['first', 'refused']);
    await expect(session.signIn()).rejects.toBeInstanceOf(SignInRequiredError);
    await answer(token('new'));
    expect(session.isRefused).toBe(false);
    expect((await session.signIn()).headers).toEqual({ authorization: 'Bearer new' });
  });

  it('S2 R12 says that someone has signed in anew: after a refusal, or on the word of the app, not at the start', async () => {
    let given = 0;
    const anew: SignInNews[] = [];
    const said = new Session(
      { credentials: () => Promise.resolve(token(String(given++))) },
      clock,
      () => undefined,
      () => undefined,
      undefined,
      (news) => anew.push(news),
    );
    const used = await said.signIn();
    expect(anew).toEqual([]);
    said.refuse(used, 'unauthorized');
    expect(anew).toEqual([]);
    said.renew();
    expect(anew).toEqual(['other']);
    said.refuse(await said.signIn(), 'unauthorized');
    await expect.poll(() => said.isRefused).toBe(false);
    expect(anew).toEqual(['other', 'renewed']);
  });

  it.each<[string, Credentials, Credentials, SignInNews]>([
    ['a token', token('one'), token('two'), 'renewed'],
    ['a header', { type: 'header', name: 'X-T', value: '1' }, { type: 'header', name: 'X-T', value: '2' }, 'renewed'],
    ['a password', basic('amber', 'one'), basic('amber', 'two'), 'other'],
    ['the same password', basic('amber', 'one'), basic('amber', 'one'), 'renewed'],
    ['a cookie', { type: 'cookie' }, { type: 'cookie' }, 'renewed'],
  ])(
    'S2 R12 knows a person who signs in from %s that the app brings in its place',
    async (_what, first, next, news) => {
      const anew: SignInNews[] = [];
      const given = [first, next];
      const said = new Session(
        { credentials: () => Promise.resolve(given.shift() ?? next) },
        clock,
        () => undefined,
        () => undefined,
        undefined,
        (one) => anew.push(one),
      );
      const used = await said.signIn();
      // The same ones are tried again when they were refused a minute ago.
      said.refuse(used, 'unauthorized');
      await expect.poll(() => anew.length + Number(said.askFailed)).toBe(1);
      clock.advance(60_000);
      said.reconsider();
      await expect.poll(() => anew).toEqual([news]);
    },
  );

  it('S2 R12 other roles of the same person are a new sign-in; the same ones in another order are none', async () => {
    const anew: SignInNews[] = [];
    const said = new Session(
      { credentials: () => Promise.resolve(token('one')) },
      clock,
      () => undefined,
      () => undefined,
      undefined,
      (one) => anew.push(one),
    );
    const used = await said.signIn();
    await said.identify(used, 'amber', ['nurse', 'clinic']);
    await said.identify(used, 'amber', ['clinic', 'nurse']);
    await said.identify(used, null);
    await said.identify(used, 'amber');
    expect(anew).toEqual([]);
    await said.identify(used, 'amber', ['nurse']);
    expect(anew).toEqual(['other']);
    await said.identify(used, 'birch', ['chief']);
    expect(anew).toEqual(['other']);
  });

  it('R12 never asks again within a minute when fresh ones are refused', async () => {
    session.isReady();
    await answer(token('one'));
    session.refuse(await session.signIn(), 'unauthorized');
    await answer(token('two'));
    session.refuse(await session.signIn(), 'unauthorized');
    session.reconsider();
    expect(asked).toEqual(['first', 'refused']);
    clock.advance(60_000);
    session.reconsider();
    expect(asked).toEqual(['first', 'refused', 'refused']);
  });

  it('R12 the same credentials that were just refused are not tried again: servers lock accounts', async () => {
    session.isReady();
    await answer(token('one'));
    session.refuse(await session.signIn(), 'unauthorized');
    await answer(token('one'));
    expect(session.isRefused).toBe(true);
    expect(session.askFailed).toBe(true);
    clock.advance(5 * 60_000);
    session.reconsider();
    await answer(token('one'));
    expect(session.isReady()).toBe(true);
  });

  it('a late refusal of old credentials says nothing about new ones', async () => {
    session.isReady();
    await answer(token('one'));
    const old = await session.signIn();
    session.renew();
    session.isReady();
    await answer(token('two'));
    session.refuse(old, 'unauthorized');
    expect(session.isRefused).toBe(false);
  });

  it('R12 the word of the app ends the wait, also while an older question is open', async () => {
    session.isReady();
    await answer(token('one'));
    session.refuse(await session.signIn(), 'unauthorized');
    expect(answers).toHaveLength(1);
    session.renew();
    expect(session.isReady()).toBe(false);
    answers.shift()?.(token('answer to the old question'));
    await turn();
    expect(session.isReady()).toBe(false);
    await answer(token('two'));
    expect((await session.signIn()).headers).toEqual({ authorization: 'Bearer two' });
  });

  it('R15 an app that has no credentials leaves a named state, and `renew` ends it', async () => {
    session.isReady();
    await answer(new Error('cancelled'));
    expect(session.isRefused).toBe(true);
    session.renew();
    expect(session.isReady()).toBe(false);
    await answer(token('one'));
    expect(session.isReady()).toBe(true);
  });

  it.each([undefined, null, {}, { type: 'made-up' }, 'secret'])('%j is not taken for credentials', async (given) => {
    session.isReady();
    await answer(given as never);
    expect(session.isRefused).toBe(true);
    expect(warnings).toEqual([expect.stringContaining('auth.credentials()')]);
  });

  it('without `auth` the cookies of the browser are used', async () => {
    const plain = new Session(
      undefined,
      clock,
      () => undefined,
      () => undefined,
    );
    expect(plain.isReady()).toBe(true);
    expect(await plain.signIn()).toEqual({ headers: {}, cookies: true, version: 0 });
  });

  it.each<[Credentials, { headers: Record<string, string>; cookies: boolean }]>([
    [{ type: 'cookie' }, { headers: {}, cookies: true }],
    [
      { type: 'bearer', token: 'one' },
      { headers: { authorization: 'Bearer one' }, cookies: false },
    ],
    [
      { type: 'basic', username: 'amber', password: 'pw' },
      { headers: { authorization: `Basic ${btoa('amber:pw')}` }, cookies: false },
    ],
    [
      { type: 'header', name: 'X-Auth-CouchDB-Token', value: 'one' },
      { headers: { 'X-Auth-CouchDB-Token': 'one' }, cookies: false },
    ],
  ])('R12 carries credentials of each kind: %j', async (given, carried) => {
    session.isReady();
    await answer(given);
    expect(await session.signIn()).toMatchObject(carried);
  });

  it('R12 a proxy’s header that cannot be sent is not taken for credentials, and is in no message', async () => {
    session.isReady();
    await answer({ type: 'header', name: 'X-One', value: 'secret\nX-Two: 2' });
    expect(session.isRefused).toBe(true);
    expect(warnings.join()).not.toContain('secret');
  });

  it('R12 carries several headers of a proxy, as CouchDB’s own proxy authentication needs them', async () => {
    session.isReady();
    const headers = { 'X-Auth-CouchDB-UserName': 'amber', 'X-Auth-CouchDB-Roles': '', 'X-Auth-CouchDB-Token': 'one' };
    await answer({ type: 'headers', headers });
    expect(await session.signIn()).toMatchObject({ headers, cookies: false });
  });

  it.each([[{ 'X One': 'secret' }], [{ 'X-One': 'secret\nX-Two: 2' }], [{ 'X-One': 7 }]])(
    'R12 several headers of which one cannot be sent are not taken for credentials: %j',
    async (headers) => {
      session.isReady();
      await answer({ type: 'headers', headers } as never);
      expect(session.isRefused).toBe(true);
      expect(warnings.join()).not.toContain('secret');
    },
  );

  it('S7 credentials that name someone else are refused before they are used, and the app is asked again', async () => {
    session.expect('amber');
    session.isReady();
    await answer({ type: 'basic', username: 'birch', password: 'pw' });
    expect(session.isReady()).toBe(false);
    expect(session.refusedAs).toBe('other-user');
    await expect(session.signIn()).rejects.toMatchObject({ code: 'other-user' });
    expect(asked).toEqual(['first', 'refused']);
    await answer({ type: 'basic', username: 'amber', password: 'pw' });
    expect(session.isReady()).toBe(true);
    expect(session.refusedAs).toBeUndefined();
  });

  it('S7 the server is asked once per sign-in whose credentials they are; basic ones say it themselves', async () => {
    session.expect('amber');
    session.isReady();
    await answer(token('one'));
    const used = await session.signIn();
    expect(session.isUnknown(used)).toBe(true);
    await session.identify(used, 'amber');
    expect(session.isUnknown(used)).toBe(false);
    session.reconsider();
    expect(session.isUnknown(used)).toBe(false);
    session.renew();
    session.isReady();
    await answer(token('two'));
    expect(session.isUnknown(await session.signIn())).toBe(true);
    session.renew();
    session.isReady();
    await answer({ type: 'basic', username: 'amber', password: 'pw' });
    expect(session.isUnknown(await session.signIn())).toBe(false);
  });

  it('S7 cookies belong to the browser: whose they are is asked again when something may have changed', async () => {
    session.expect('amber');
    session.isReady();
    await answer({ type: 'cookie' });
    const used = await session.signIn();
    await session.identify(used, 'amber');
    session.reconsider();
    expect(session.isUnknown(used)).toBe(true);
    await session.identify(used, 'birch');
    expect(session.refusedAs).toBe('other-user');
  });

  it('S7 the first name that the server says is remembered; that it knows nobody says nothing', async () => {
    session.isReady();
    await answer(token('one'));
    const used = await session.signIn();
    await session.identify(used, null);
    await session.identify(used, 'amber');
    await session.identify(used, 'birch');
    expect(session.refusedAs).toBe('other-user');
  });

  it('S7 a late answer about old credentials says nothing about new ones', async () => {
    session.expect('amber');
    session.isReady();
    await answer(token('one'));
    const old = await session.signIn();
    session.renew();
    session.isReady();
    await answer(token('two'));
    await session.identify(old, 'birch');
    expect(session.isRefused).toBe(false);
    expect(session.isUnknown(await session.signIn())).toBe(true);
  });

  it('basic credentials may hold any letters', async () => {
    session.isReady();
    await answer({ type: 'basic', username: 'zoë', password: 'ключ' });
    const { headers } = await session.signIn();
    const bytes = Uint8Array.from(atob((headers['authorization'] ?? '').slice(6)), (letter) => letter.charCodeAt(0));
    expect(new TextDecoder().decode(bytes)).toBe('zoë:ключ');
  });
});
