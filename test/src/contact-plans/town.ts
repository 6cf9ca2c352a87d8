import type { Doc } from '@afield/client';

/** The lineage of these ids, nearest first. */
export function under(...ids: string[]): { readonly _id: string } | undefined {
  const [first, ...rest] = ids;
  if (first === undefined) return undefined;
  return rest.length === 0 ? { _id: first } : { _id: first, ...{ parent: under(...rest) } };
}

/**
 * Two districts `d1` and `d2` with a health centre each, `h1` and `h2`. Below `h1` are a nurse `n1` and so many clinics
 * `c0` …, with four people each (`c0-p0` …), the first of them the clinic's contact, and so many reports about them. All
 * lineages are right.
 */
export function town({ clinics, reports }: { readonly clinics: number; readonly reports: number }): readonly Doc[] {
  const docs: Doc[] = [
    { _id: 'd1', type: 'district_hospital' },
    { _id: 'd2', type: 'district_hospital' },
    {
      _id: 'h1',
      type: 'health_center',
      place_id: '501',
      parent: under('d1'),
      contact: { _id: 'n1', parent: under('h1', 'd1') },
    },
    { _id: 'h2', type: 'health_center', place_id: '502', parent: under('d2') },
    { _id: 'n1', type: 'person', parent: under('h1', 'd1') },
  ];
  for (let at = 0; at < clinics; at += 1) {
    const clinic = `c${String(at)}`;
    const parent = under(clinic, 'h1', 'd1');
    docs.push({ _id: clinic, type: 'clinic', parent: under('h1', 'd1'), contact: { _id: `${clinic}-p0`, parent } });
    for (let one = 0; one < 4; one += 1) docs.push({ _id: `${clinic}-p${String(one)}`, type: 'person', parent });
  }
  for (let at = 0; at < reports; at += 1) {
    const clinic = `c${String(at % clinics)}`;
    const person = `${clinic}-p${String(at % 4)}`;
    docs.push({
      _id: `r${String(at)}`,
      type: 'data_record',
      form: 'visit',
      contact: { _id: person, parent: under(clinic, 'h1', 'd1') },
      fields: { patient_uuid: person, note: 'made up' },
    });
  }
  return docs;
}
