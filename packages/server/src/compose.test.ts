import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { runCommandLine } from './cli.js';

const texts = z.record(z.string(), z.string());
const service = z.strictObject({
  image: z.string(),
  restart: z.string(),
  depends_on: z.optional(z.array(z.string())),
  user: z.optional(z.string()),
  working_dir: z.optional(z.string()),
  environment: texts,
  ports: z.optional(z.array(z.string())),
  volumes: z.array(z.string()),
  command: z.optional(z.array(z.string())),
});
const compose = z.strictObject({ services: z.record(z.string(), service), volumes: z.record(z.string(), z.null()) });

describe('compose.yaml', async () => {
  const text = await readFile(new URL('../../../compose.yaml', import.meta.url), 'utf8');
  const { services, volumes } = compose.parse(load(text));

  it('S1 starts a CouchDB 3 whose data and settings outlive it', () => {
    expect(services['couchdb']?.image).toMatch(/^couchdb:3(\.|$)/);
    const mounts = services['couchdb']?.volumes.map((mount) => mount.split(':')) ?? [];
    expect(mounts.map(([, path]) => path)).toEqual(['/opt/couchdb/data', '/opt/couchdb/etc/local.d']);
    expect(mounts.map(([name]) => name)).toEqual(Object.keys(volumes));
  });

  it('S7 has no password of its own, and lets in nobody from outside', () => {
    for (const { environment } of Object.values(services)) {
      expect(environment['COUCHDB_PASSWORD']).toMatch(/^\$\{COUCHDB_PASSWORD:\?[^}]+\}$/);
    }
    expect(services['couchdb']?.ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:/)]);
  });

  it('S1 runs the set-up with arguments that it takes, and waits for CouchDB', async () => {
    const [node, bin, ...given] = services['setup']?.command ?? [];
    expect([node, bin]).toEqual(['node', 'packages/server/bin/afield-server.js']);
    const filled = given.map((argument) => argument.replace(/\$\{\w+:-([^}]*)\}/, '$1'));
    expect(filled).toContain('--wait=120');
    const asked: string[] = [];
    let said = '';
    const code = await runCommandLine(
      filled.map((argument) => (argument === '--wait=120' ? '--wait=0' : argument)),
      {
        environment: { COUCHDB_USER: 'admin', COUCHDB_PASSWORD: 'x' },
        ask: undefined,
        fetch: (input) => {
          asked.push(input as string);
          return Promise.reject(new TypeError('not there'));
        },
        out: () => Promise.resolve(),
        say: (line) => void (said += line),
        now: Date.now,
      },
    );
    expect({ code, asked }).toEqual({ code: 1, asked: ['http://couchdb:5984/'] });
    expect(said).toContain('Nothing answers');
  });
});
