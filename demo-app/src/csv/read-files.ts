import { v5 as uuid } from 'uuid';
import type { Column } from './column.js';
import { Findings, type Finding } from './finding.js';
import { getPath, setPath, type Fields } from './set-path.js';
import { cellOf, readTable, type Row, type SourceFile, type Table } from './table.js';
import { readValue } from './value.js';

export interface NewDocument extends Fields {
  readonly _id: string;
  readonly type: string;
}

/** An id and the ids above it; nothing else. */
export interface Lineage {
  readonly _id: string;
  readonly parent?: Lineage;
}

export interface ReadFiles {
  /** Places first, from the top down, then persons, then reports. */
  readonly documents: readonly NewDocument[];
  readonly findings: readonly Finding[];
  /** Rows read, by file. */
  readonly rows: Readonly<Record<string, number>>;
}

/** A place or a person, before it is a document. */
interface Contact {
  readonly id: string;
  readonly table: Table;
  readonly row: Row;
  parentId: string | undefined;
}

const deepestLineage = 50;
const rowsInStep = 100;
const namespace = '6d0c4e57-90a5-4a1e-8c7f-6b1d2f3a9e01';
const order = { place: 0, person: 1, report: 2 } as const;

/**
 * Turns cht-conf style files into documents. Pure: the same files and the same `now` give the same documents.
 *
 * @param now milliseconds since 1970, what `:rel-timestamp` counts from
 */
export function readFiles(sources: readonly SourceFile[], now: number): ReadFiles {
  const steps = readFilesInSteps(sources, now);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same in small steps: a page can draw between them. */
export function* readFilesInSteps(sources: readonly SourceFile[], now: number): Generator<void, ReadFiles> {
  const findings = new Findings();
  const tables: Table[] = [];
  for (const source of [...sources].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))) {
    const table = readTable(source, findings);
    if (table) tables.push(table);
    yield;
  }
  tables.sort((a, b) => order[a.kind] - order[b.kind]);
  const contacts = new Contacts(tables, findings);
  yield;
  const documents: NewDocument[] = [];
  for (const { id, table, row } of contacts.topDown()) {
    documents.push(readRow(id, table, row, contacts, findings, now));
    if (documents.length % rowsInStep === 0) yield;
  }
  for (const table of tables.filter(({ kind }) => kind === 'report')) {
    const seen = new Set<string>();
    for (const row of table.rows) {
      const id = idOf(table, row);
      if (isNew(id, seen, table, row, findings)) documents.push(readRow(id, table, row, contacts, findings, now));
      if (seen.size % rowsInStep === 0) yield;
    }
  }
  return {
    documents,
    findings: findings.list(),
    rows: Object.fromEntries(tables.map((table) => [table.file, table.rows.length])),
  };
}

/** Whether no row before had this id; lists it when one had. */
function isNew(id: string, seen: Set<string>, table: Table, row: Row, findings: Findings): boolean {
  if (!seen.has(id)) {
    seen.add(id);
    return true;
  }
  const reference = cellOf(table, row, 'reference_id');
  findings.add(reference === '' ? 'row-twice' : 'reference-twice', table.file, at(row, reference));
  return false;
}

/** From the reference where there is one, else from all that stands in the row. */
function idOf(table: Table, row: Row): string {
  const reference = cellOf(table, row, 'reference_id');
  const what = table.kind === 'report' ? `report:${table.detail}` : table.kind;
  if (reference !== '') return `${what}:${reference}`;
  return `${what}:${uuid(JSON.stringify([table.detail, row.cells]), namespace)}`;
}

function readRow(id: string, table: Table, row: Row, contacts: Contacts, findings: Findings, now: number): NewDocument {
  const isReport = table.kind === 'report';
  const type = isReport ? 'data_record' : table.kind === 'person' ? 'person' : table.detail;
  const document: NewDocument = isReport ? { _id: id, type, form: table.detail } : { _id: id, type };
  table.columns.forEach((column, index) => {
    const text = (row.cells[index] ?? '').trim();
    if (text === '' || column.kind === 'excluded' || column.kind === 'refused') return;
    const value = readCell(column, text, id, table, row, contacts, findings, now);
    if (value === undefined) return;
    if (!setPath(document, column.path, value)) {
      findings.add('value-not-readable', table.file, `${at(row, column.name)}: another column stands in its way`);
    }
  });
  for (const field of ['contact', 'parent']) {
    const written = getPath(document, [field, '_id']);
    if (typeof written === 'string' && !contacts.has(written)) {
      findings.add('id-leads-nowhere', table.file, at(row, `${field}._id ${written}`));
    }
  }
  return document;
}

function readCell(
  column: Exclude<Column, { kind: 'excluded' | 'refused' }>,
  text: string,
  id: string,
  table: Table,
  row: Row,
  contacts: Contacts,
  findings: Findings,
  now: number,
): unknown {
  if (column.kind === 'value') {
    const value = readValue(text, column.type, now);
    if (value === undefined) findings.add('value-not-readable', table.file, at(row, `${column.name} "${text}"`));
    return value;
  }
  if (column.kind === 'lookup') {
    const found = contacts.find(column.of, column.where, text);
    const value = found && cellOf(found.table, found.row, column.get);
    if (value === undefined || value === '') {
      findings.add('lookup-leads-nowhere', table.file, at(row, `${column.name} of ${text}`));
      return undefined;
    }
    return value;
  }
  // Links upwards were followed before: a circle has been opened there, and what leads nowhere has been listed.
  if (column.name === 'parent' && table.kind !== 'report') {
    const parentId = contacts.parentOf(id);
    return parentId === undefined ? undefined : contacts.lineage(parentId);
  }
  const found = contacts.find(column.of, column.where, text);
  if (found) return contacts.lineage(found.id);
  findings.add('link-leads-nowhere', table.file, at(row, `${column.name} ${text}`));
  return undefined;
}

function at(row: Row, what: string): string {
  return `row ${String(row.number)}: ${what}`;
}

/** Places and persons by id and by what links ask for. */
class Contacts {
  readonly #byId = new Map<string, Contact>();
  readonly #indexes = new Map<string, Map<string, Contact>>();

  constructor(tables: readonly Table[], findings: Findings) {
    const seen = new Set<string>();
    for (const table of tables.filter(({ kind }) => kind !== 'report')) {
      for (const row of table.rows) this.#add(table, row, seen, findings);
    }
    for (const contact of this.#byId.values()) contact.parentId = this.#findParent(contact, findings);
    this.#openCircles(findings);
    for (const contact of [...this.#byId.values()]) {
      if (contact.table.kind !== 'person' || this.#hasPlace(contact)) continue;
      findings.add('person-without-place', contact.table.file, at(contact.row, contact.id));
      this.#byId.delete(contact.id);
    }
    this.#indexes.clear();
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  parentOf(id: string): string | undefined {
    return this.#byId.get(id)?.parentId;
  }

  /** The first row of that kind (`place`, `person`) or type (`clinic`) whose column has this text. */
  find(of: string, where: string, text: string): Contact | undefined {
    const name = `${of} ${where}`;
    let index = this.#indexes.get(name);
    if (!index) {
      index = new Map();
      for (const contact of this.#byId.values()) {
        if (contact.table.kind !== of && contact.table.detail !== of) continue;
        const value = cellOf(contact.table, contact.row, where);
        if (value !== '' && !index.has(value)) index.set(value, contact);
      }
      this.#indexes.set(name, index);
    }
    return index.get(text);
  }

  lineage(id: string): Lineage {
    const ids: string[] = [];
    for (let here: string | undefined = id; here !== undefined; here = this.#byId.get(here)?.parentId) ids.push(here);
    return ids.reduceRight<Lineage | undefined>(
      (parent, _id) => (parent === undefined ? { _id } : { _id, parent }),
      undefined,
    ) as Lineage;
  }

  topDown(): readonly Contact[] {
    const depths = new Map([...this.#byId.keys()].map((id) => [id, this.#depth(id)]));
    const depthOf = (contact: Contact): number => depths.get(contact.id) ?? 0;
    return [...this.#byId.values()].sort(
      (a, b) => order[a.table.kind] - order[b.table.kind] || depthOf(a) - depthOf(b),
    );
  }

  #add(table: Table, row: Row, seen: Set<string>, findings: Findings): void {
    const id = idOf(table, row);
    if (isNew(id, seen, table, row, findings)) this.#byId.set(id, { id, table, row, parentId: undefined });
  }

  #findParent(contact: Contact, findings: Findings): string | undefined {
    const { table, row } = contact;
    const index = table.columns.findIndex((column) => column.kind === 'link' && column.name === 'parent');
    const column = table.columns[index];
    const text = (row.cells[index] ?? '').trim();
    if (column?.kind !== 'link' || text === '') return undefined;
    const found = this.find(column.of, column.where, text);
    if (!found && table.kind !== 'person') findings.add('link-leads-nowhere', table.file, at(row, `parent ${text}`));
    return found?.id;
  }

  #openCircles(findings: Findings): void {
    for (const contact of this.#byId.values()) {
      const seen = new Set([contact.id]);
      for (let here = contact.parentId; here !== undefined; here = this.#byId.get(here)?.parentId) {
        if (!seen.has(here) && seen.size <= deepestLineage) {
          seen.add(here);
          continue;
        }
        findings.add('circle-of-places', contact.table.file, at(contact.row, contact.id));
        contact.parentId = undefined;
        break;
      }
    }
  }

  /** Linked, or written out in a column such as `parent._id`. */
  #hasPlace(contact: Contact): boolean {
    if (contact.parentId !== undefined) return true;
    return cellOf(contact.table, contact.row, 'parent._id') !== '';
  }

  #depth(id: string): number {
    let depth = 0;
    for (let here = this.#byId.get(id)?.parentId; here !== undefined; here = this.#byId.get(here)?.parentId) depth += 1;
    return depth;
  }
}
