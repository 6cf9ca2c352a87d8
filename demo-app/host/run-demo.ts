import { serveDemo } from './serve.js';

export interface Voice {
  /** Progress, for people. */
  readonly say: (line: string) => void;
  /** Results, on standard output. */
  readonly print: (line: string) => void;
  /** Takes what is to be done when the process is asked to end. */
  readonly atEnd: (tidyUp: () => Promise<void>) => void;
}

/** The page keeps its records by its address: a port that stays the same finds them again. */
const usualPort = 4470;

/** Starts the demo and lets it run until the process ends. */
export async function runDemo({ say, print, atEnd }: Voice): Promise<void> {
  const couchUrl = process.env['COUCHDB_URL'];
  say(couchUrl === undefined ? 'Starting the embedded server and its fault proxy …' : 'Connecting to COUCHDB_URL …');
  const demo = await serveDemo({ couchUrl, port: usualPort });
  atEnd(() => demo.close());
  say(`Server behind the fault proxy: ${demo.serverAddress}`);
  if (couchUrl === undefined) say('The embedded server keeps nothing: every start begins empty.');
  print(`Afield demo: ${demo.address}`);
}
