import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readCases, type Case } from '@afield/testing';

/** Cases with their variants, as found, and the names of all of them before the choice by name. */
export interface FoundCases {
  readonly folder: string;
  /** Whether it is the usual folder, the one that `test/pending.json` is about. */
  readonly isOurs: boolean;
  readonly chosen: readonly Case[];
  readonly allNames: ReadonlySet<string>;
}

/** Names of cases that cannot pass yet, with the reason. */
export type Pending = Readonly<Record<string, string>>;

/** Reads all case files of the folder; a name that no case has is an error. */
export async function findCases(
  root: string,
  folder: string | undefined,
  names: readonly string[],
): Promise<FoundCases> {
  const shared = resolve(root, '../shared/cases');
  const place = folder === undefined ? (existsSync(shared) ? shared : join(root, 'test/cases')) : resolve(root, folder);
  const files = (await readdir(place)).filter((file) => file.endsWith('.json')).sort();
  if (files.length === 0) throw new Error(`no case files in ${place}`);
  const all: Case[] = [];
  for (const file of files) all.push(...readCases(await readFile(join(place, file), 'utf8'), file));
  const missing = names.find((name) => !all.some((one) => isNamed(one, name)));
  if (missing !== undefined) throw new Error(`no case is called ${missing}`);
  const chosen = names.length === 0 ? all : all.filter((one) => names.some((name) => isNamed(one, name)));
  return { folder: place, isOurs: folder === undefined, chosen, allNames: new Set(all.map((one) => one.name)) };
}

/** Reads `test/pending.json`: the name of a case or variant, and why it cannot pass yet. */
export async function readPending(root: string): Promise<Pending> {
  return JSON.parse(await readFile(join(root, 'test/pending.json'), 'utf8')) as Pending;
}

function isNamed(one: Case, name: string): boolean {
  return one.name === name || one.name.startsWith(`${name}/`);
}
