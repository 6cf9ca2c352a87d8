import { describe, expect, it } from 'vitest';
import { createAction } from '../actions/create.js';
import { deleteAction } from '../actions/delete.js';
import type { DocumentAction } from '../model/handler.js';
import { setFields } from './devices.fixture.js';
import { everyOrder, type Explored, type Mistakes, type ScriptedOperation } from './every-order.fixture.js';

/*
 * The argument that healing ends (docs/decisions/healing.md), tried on everything that a few devices can do. With
 * AFIELD_HEALING=all there are more names of revisions (other winners), and longer scripts: about twenty minutes.
 */
const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
const isLong = process?.env['AFIELD_HEALING'] === 'all';

type Scripts = Readonly<Record<string, readonly (readonly ScriptedOperation[])[]>>;

const set = (to: Record<string, unknown>, from?: Record<string, unknown>): ScriptedOperation => ({
  action: setFields as DocumentAction,
  content: from === undefined ? { to } : { to, from },
});
const edit = (to: Record<string, unknown>): ScriptedOperation => ({ ...set(to), isForeign: true });
const remove: ScriptedOperation = { action: deleteAction as DocumentAction, content: {} };
const create = (doc: Record<string, unknown>): ScriptedOperation => ({
  action: createAction as DocumentAction,
  content: { doc },
});

const twoDevices: Scripts = {
  'both set one field': [[set({ p: 'a' })], [set({ p: 'b' })]],
  'two operations each': [
    [set({ p: 'a' }), set({ q: 'a' })],
    [set({ p: 'b' }), set({ q: 'b' })],
  ],
  'guards in a chain': [
    [set({ p: 'a' }, { p: '0' }), set({ p: 'aa' }, { p: 'a' })],
    [set({ p: 'b' }, { p: '0' }), set({ q: 'b' })],
  ],
  'one deletes, the other edits': [[remove], [set({ p: 'b' }), set({ q: 'b' })]],
  'one deletes and makes it anew': [[remove, create({ p: 'new' })], [set({ p: 'b' })]],
  'edits of the app between operations': [
    [edit({ q: 'app' }), set({ p: 'a' })],
    [set({ p: 'b' }), set({ p: 'bb' })],
  ],
  'an edit of the app after an operation': [
    [set({ p: 'a' }), edit({ q: 'app' })],
    [set({ p: 'b' }), set({ p: 'bb' })],
  ],
};
const threeDevices: Scripts = {
  guards: [[set({ p: 'a' }, { p: '0' })], [set({ p: 'b' }, { p: '0' })], [set({ q: 'c' })]],
  'an edit of the app': [[set({ p: 'a' })], [edit({ q: 'app' })], [set({ p: 'c' })]],
};
const longer: Scripts = {
  'each sets one field': [[set({ p: 'a' })], [set({ p: 'b' })], [set({ p: 'c' })]],
  'one deletes': [[set({ p: 'a' })], [set({ q: 'b' })], [remove]],
  'an operation on top of an edit of the app': [
    [edit({ q: 'app' }), set({ p: 'a' })],
    [set({ p: 'b' })],
    [set({ q: 'c' })],
  ],
};
const sets = {
  'two devices': { scripts: twoDevices, salts: isLong ? 60 : 6 },
  'three devices': { scripts: { ...threeDevices, ...(isLong ? longer : {}) }, salts: isLong ? 8 : 1 },
};

describe('every order of events', () => {
  const explored = (scripts: readonly (readonly ScriptedOperation[])[], salt: string, mistakes?: Mistakes): Explored =>
    everyOrder(scripts, { p: '0' }, salt, mistakes);

  for (const [devices, { scripts, salts }] of Object.entries(sets)) {
    for (const [name, script] of Object.entries(scripts)) {
      it(
        `S2 ${devices}, ${name}: it ends, all are equal, no conflict of operations is left, and nothing is lost`,
        { timeout: 1_200_000 },
        () => {
          for (let salt = 0; salt < salts; salt++) {
            const { problems, states, ends, longest } = explored(script, String(salt));
            if (isLong)
              console.log(
                `${devices}, ${name}: ${String(states)} states, ${String(ends)} ends, ${String(longest)} steps`,
              );
            expect(problems.slice(0, 3)).toEqual([]);
            expect(states).toBeGreaterThan(30);
          }
        },
      );
    }
  }

  const both = twoDevices['both set one field'] ?? [];
  const edited = twoDevices['edits of the app between operations'] ?? [];
  const wrong = (script: typeof both, mistakes: Mistakes): readonly string[] =>
    ['0', '1', '2', '3'].flatMap((salt) => explored(script, salt, mistakes).problems.map(({ problem }) => problem));

  it('S2 healing by the device that has won, too, would go on for ever', () => {
    expect(() => wrong(both, { winnerToo: true })).toThrow('It does not come to an end');
  });

  it('S2 losing leaves that were removed by whoever sees them would lose edits of the app', () => {
    expect(wrong(edited, { removesAll: true })).toContain('an edit of the app is lost');
  });

  it('S2 operations that have failed would stay so though another branch with them has won, if nobody looked again', () => {
    const script = threeDevices['guards'] ?? [];
    expect(explored(script, '0', { regainsNothing: true }).problems.map(({ problem }) => problem)).toContainEqual(
      expect.stringMatching(/has failed, and is in the winner/),
    );
  });

  it('S2 without marks a branch with operations of two devices would stay for ever', () => {
    const script = threeDevices['guards'] ?? [];
    expect(explored(script, '0', { marksNothing: true }).problems.map(({ problem }) => problem)).toContain(
      'a conflict is left',
    );
  });
});
