import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Finding } from './finding.js';
import { readFiles, type ReadFiles } from './read-files.js';

const now = 1_800_000_000_000;
const places = {
  name: 'place.clinic.csv',
  text: 'reference_id:excluded,parent:place WHERE reference_id=COL_VAL,name\ntop,,Top\nmid,top,Mid\nleaf,mid,Leaf\n',
};

function read(...files: { name: string; text: string }[]): ReadFiles {
  return readFiles(files, now);
}

function document(result: ReadFiles, id: string): unknown {
  return result.documents.find(({ _id }) => _id === id);
}

function counts(findings: readonly Finding[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { kind, count } of findings) sums[kind] = (sums[kind] ?? 0) + count;
  return sums;
}

function persons(header: string, ...rows: string[]): { name: string; text: string } {
  return { name: 'person.clinic.csv', text: [header, ...rows].join('\n') };
}

describe('CSV import', () => {
  it('takes the type from the file name, the id from the reference, and leaves excluded and empty cells out', () => {
    const result = read(places);
    expect(document(result, 'place:top')).toEqual({ _id: 'place:top', type: 'clinic', name: 'Top' });
    expect(result.findings).toEqual([]);
  });

  it('writes lineages that hold ids and parents only, and lists places from the top down', () => {
    const result = read({
      ...places,
      text: places.text.split('\n').slice(0, 1).concat(['leaf,mid,Leaf', 'mid,top,Mid', 'top,,Top']).join('\n'),
    });
    expect(result.documents.map(({ _id }) => _id)).toEqual(['place:top', 'place:mid', 'place:leaf']);
    expect(document(result, 'place:leaf')).toMatchObject({
      parent: { _id: 'place:mid', parent: { _id: 'place:top' } },
    });
  });

  it('reads values by the type of their column', () => {
    const header =
      'reference_id:excluded,parent:place WHERE reference_id=COL_VAL,a:int,b:float,c:bool,d:timestamp,e:rel-timestamp,f:date,g.h.i,j:timestamp';
    const result = read(places, persons(header, 'p,leaf,-7,1.5,FALSE,1544031155715,-1000,2018-12-09,deep,2018-12-09'));
    expect(document(result, 'person:p')).toMatchObject({
      a: -7,
      b: 1.5,
      c: false,
      d: 1_544_031_155_715,
      e: now - 1000,
      f: '2018-12-09T00:00:00.000Z',
      g: { h: { i: 'deep' } },
      j: Date.parse('2018-12-09'),
    });
  });

  it('leaves a value out that does not fit its column, and counts it', () => {
    const result = read(
      places,
      persons('reference_id:excluded,parent:place WHERE reference_id=COL_VAL,a:int', 'p,leaf,few'),
    );
    expect(document(result, 'person:p')).not.toHaveProperty('a');
    expect(counts(result.findings)).toEqual({ 'value-not-readable': 1 });
  });

  it('looks up a value and a contact of another row', () => {
    const report = {
      name: 'report.pregnancy.csv',
      text: 'patient_id:GET patient_id OF person WHERE reference_id=COL_VAL,contact:person WHERE reference_id=COL_VAL\np,p',
    };
    const person = persons('reference_id:excluded,patient_id,parent:place WHERE reference_id=COL_VAL', 'p,80001,leaf');
    const [made] = read(places, person, report).documents.filter(({ type }) => type === 'data_record');
    expect(made).toMatchObject({
      form: 'pregnancy',
      patient_id: '80001',
      contact: {
        _id: 'person:p',
        parent: { _id: 'place:leaf', parent: { _id: 'place:mid', parent: { _id: 'place:top' } } },
      },
    });
    expect(made?.['contact']).not.toHaveProperty('name');
  });

  it('counts the first row of a reference that stands twice', () => {
    const header = 'reference_id:excluded,parent:place WHERE reference_id=COL_VAL,name';
    const result = read(places, persons(header, 'p,leaf,First', 'p,mid,Second'));
    expect(document(result, 'person:p')).toMatchObject({ name: 'First', parent: { _id: 'place:leaf' } });
    expect(counts(result.findings)).toEqual({ 'reference-twice': 1 });
  });

  it('counts the first of two columns of one name', () => {
    const result = read({ name: 'place.clinic.csv', text: 'reference_id:excluded,name,name\na,one,two' });
    expect(document(result, 'place:a')).toMatchObject({ name: 'one' });
    expect(counts(result.findings)).toEqual({ 'column-twice': 1 });
  });

  it('stores a report without the links that lead nowhere, and keeps a written-out id as it is', () => {
    const report = {
      name: 'report.delivery.csv',
      text:
        'patient_id:GET patient_id OF person WHERE reference_id=COL_VAL,contact._id,contact.parent._id,by:person WHERE reference_id=COL_VAL\n' +
        'gone,old-nurse,old-clinic,gone',
    };
    const [made] = read(report).documents;
    expect(made).toMatchObject({ contact: { _id: 'old-nurse', parent: { _id: 'old-clinic' } } });
    expect(made).not.toHaveProperty('patient_id');
    expect(made).not.toHaveProperty('by');
    expect(counts(read(report).findings)).toEqual({
      'lookup-leads-nowhere': 1,
      'link-leads-nowhere': 1,
      'id-leads-nowhere': 1,
    });
  });

  it('leaves a person out whose place is not there, and what refers to that person leads nowhere', () => {
    const person = persons('reference_id:excluded,parent:place WHERE reference_id=COL_VAL', 'p,gone');
    const report = { name: 'report.visit.csv', text: 'contact:person WHERE reference_id=COL_VAL,x\np,1' };
    const result = read(places, person, report);
    expect(document(result, 'person:p')).toBeUndefined();
    expect(counts(result.findings)).toEqual({ 'person-without-place': 1, 'link-leads-nowhere': 1 });
  });

  it('opens a circle of places', () => {
    const text = 'reference_id:excluded,parent:place WHERE reference_id=COL_VAL\na,b\nb,a';
    const result = read({ name: 'place.clinic.csv', text });
    expect(document(result, 'place:a')).not.toHaveProperty('parent');
    expect(document(result, 'place:b')).toMatchObject({ parent: { _id: 'place:a' } });
    expect(counts(result.findings)).toEqual({ 'circle-of-places': 1 });
  });

  it('gives a report the same id every time and stores a repeated row once', () => {
    const report = { name: 'report.visit.csv', text: 'at:rel-timestamp,x\n-5,1\n-5,1\n-5,2' };
    const once = readFiles([report], now);
    const again = readFiles([report], now + 1000);
    expect(once.documents.map(({ _id }) => _id)).toEqual(again.documents.map(({ _id }) => _id));
    expect(new Set(once.documents.map(({ _id }) => _id)).size).toBe(2);
    expect(counts(once.findings)).toEqual({ 'row-twice': 1 });
  });

  it('keeps constructor as plain data, refuses __proto__ and pollutes nothing', () => {
    const header =
      'reference_id:excluded,constructor.prototype.polluted,__proto__.polluted,a.__proto__.polluted,_rev,type';
    const result = read({ name: 'place.clinic.csv', text: `${header}\na,data,bad,bad,1-x,person` });
    const made = document(result, 'place:a');
    expect(made).toEqual({ _id: 'place:a', type: 'clinic', constructor: { prototype: { polluted: 'data' } } });
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(counts(result.findings)).toEqual({ 'column-refused': 4 });
  });

  it('does not read files of other names, and says so', () => {
    expect(counts(read({ name: 'users.csv', text: 'a\n1' }).findings)).toEqual({ 'file-not-known': 1 });
  });

  it('reads the sample and finds every kind of trouble that it has on purpose', () => {
    const folder = fileURLToPath(new URL('../../public/sample/', import.meta.url));
    const files = readdirSync(folder)
      .filter((name) => name.endsWith('.csv'))
      .map((name) => ({ name, text: readFileSync(`${folder}/${name}`, 'utf8') }));
    const result = readFiles(files, now);
    expect(new Set(result.documents.map(({ _id }) => _id)).size).toBe(result.documents.length);
    expect(counts(result.findings)).toEqual({
      'reference-twice': 1,
      'person-without-place': 1,
      'column-twice': 1,
      'column-refused': 1,
      'link-leads-nowhere': 3,
      'lookup-leads-nowhere': 2,
      'id-leads-nowhere': 4,
      'row-twice': 1,
      'value-not-readable': 2,
    });
    expect(JSON.stringify(result.documents)).not.toContain('polluted');
  });
});
