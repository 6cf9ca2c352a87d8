import { PlanRefusedError, type Doc, type DocumentReader } from '@afield/client';
import { userPrefix } from './contacts-index.js';
import { idsIn, ownField } from './lineage.js';
import { codeOf, isReport } from './report.js';

/** Documents that are read, and keys that are asked for, before the page gets a turn. */
export const atOnce = 250;
/** Levels of a lineage in a document that are looked up together; what lies above is found on the way. */
const levelsAtOnce = 60;

/** What is kept of a contact. */
export interface SeenContact {
  readonly id: string;
  /** The field `parent`, whatever it holds. */
  readonly parent: unknown;
  /** Neither a report nor user settings. */
  readonly isContact: boolean;
  /** `contact_type`, else `type`. */
  readonly kind: unknown;
  /** Short codes, by which reports may name it: see `SeenContacts.codesOf`. */
  readonly patientId: string | undefined;
  readonly placeId: string | undefined;
}

/** Short codes by which reports name a contact. */
export type Codes = Pick<SeenContact, 'patientId' | 'placeId'>;

/** Contacts by their ids, as they were read. */
export interface Seen {
  /** Undefined when there is no such document here. */
  get(id: string): SeenContact | undefined;
}

/** The contacts that a plan has read: each once, with all above it. */
export class SeenContacts implements Seen {
  readonly #db: DocumentReader;
  readonly #seen = new Map<string, SeenContact>();
  readonly #asked = new Set<string>();
  readonly #deleted = new Set<string>();

  constructor(db: DocumentReader) {
    this.#db = db;
  }

  get(id: string): SeenContact | undefined {
    return this.#seen.get(id);
  }

  /** Whether it was here once. */
  wasDeleted(id: string): boolean {
    return this.#deleted.has(id);
  }

  /** Reads those that were not read yet, then those in their lineages, until all above them are known. */
  async learn(ids: Iterable<string>): Promise<void> {
    let next = this.#unasked(ids);
    while (next.size > 0) {
      const above = new Set<string>();
      for (const page of pagesOf([...next])) {
        for (const id of page) this.#asked.add(id);
        for (const { id, doc, deleted } of await this.#db.read(page)) {
          if (deleted) this.#deleted.add(id);
          if (doc === undefined) continue;
          const contact = seenContact(doc);
          this.#seen.set(id, contact);
          for (const one of idsIn(contact.parent, levelsAtOnce)) above.add(one);
        }
      }
      next = this.#unasked(above);
    }
  }

  /** Reads what has the short codes of these contacts as its id: ask before `codesOf`. */
  async learnCodes(ids: Iterable<string>): Promise<void> {
    const contacts = [...ids].map((id) => this.get(id));
    await this.learn(contacts.flatMap((one) => [one?.patientId, one?.placeId]).filter((code) => code !== undefined));
  }

  /** The codes that it has, without those that are the id of another document: whoever names that, means that. */
  codesOf(id: string): Codes {
    const own = (code: string | undefined): string | undefined =>
      code === undefined || code === id || this.get(code) === undefined ? code : undefined;
    const contact = this.get(id);
    return { patientId: own(contact?.patientId), placeId: own(contact?.placeId) };
  }

  /**
   * Short codes in a report that mean someone whom it names by id, too, so nobody else who has the same code. `gone`: ids
   * that do not count. Its subjects must have been read.
   */
  codesOfNamed(subjects: readonly string[], gone: { has(id: string): boolean }): ReadonlySet<string> {
    const named = subjects.map((id) => (gone.has(id) ? undefined : this.get(id)));
    const codes = named.flatMap((one) => [one?.patientId, one?.placeId]).filter((code) => code !== undefined);
    return new Set(codes.filter((code) => !gone.has(code)));
  }

  /** Throws `PlanRefusedError` (`missing`) when there is no such contact on this device. */
  async expect(id: string): Promise<SeenContact> {
    await this.learn([id]);
    const contact = this.get(id);
    if (contact === undefined) throw new PlanRefusedError('missing', `There is no contact "${id}" on this device.`);
    return contact;
  }

  /** Throws `PlanRefusedError` (`not_a_contact`) when one of these is there, and is something else. */
  assertContacts(ids: readonly string[]): void {
    const other = ids.find((id) => this.get(id)?.isContact === false);
    if (other !== undefined) throw new PlanRefusedError('not_a_contact', `"${other}" is no contact.`);
  }

  #unasked(ids: Iterable<string>): Set<string> {
    return new Set([...ids].filter((id) => !this.#asked.has(id)));
  }
}

/** What is kept of a document. */
export function seenContact(doc: Doc): SeenContact {
  return {
    id: doc._id,
    isContact: !isReport(doc) && !doc._id.startsWith(userPrefix),
    parent: ownField(doc, 'parent'),
    kind: ownField(doc, 'contact_type') ?? ownField(doc, 'type'),
    patientId: codeOf(ownField(doc, 'patient_id')),
    placeId: codeOf(ownField(doc, 'place_id')),
  };
}

/** The live documents of these ids, page by page. */
export async function* liveDocs(db: DocumentReader, ids: Iterable<string>): AsyncGenerator<readonly Doc[], void> {
  for (const page of pagesOf([...ids])) {
    yield (await db.read(page)).flatMap(({ doc }) => (doc === undefined ? [] : [doc]));
  }
}

export function* pagesOf<T>(list: readonly T[]): Generator<readonly T[], void> {
  for (let at = 0; at < list.length; at += atOnce) yield list.slice(at, at + atOnce);
}
