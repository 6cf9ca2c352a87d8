import { z } from 'zod/mini';

const DemoConfig = z.object({
  /** Names the stores on this device. Another server (or an embedded one that starts anew) has another name. */
  name: z.string(),
  /** Whether stores of other names can be thrown away: their server is gone and kept nothing. */
  forgetOthers: z.boolean(),
  server: z.string(),
  results: z.string(),
  /** The database that events are published to. */
  events: z.string(),
  /** Where the fault proxy in front of the server takes orders. */
  control: z.string(),
  /** Development only: a real app asks the person. */
  credentials: z.object({ username: z.string(), password: z.string() }),
  /** Files under `sample/`. */
  sample: z.array(z.string()),
});

/** What the start command tells the page. */
export type DemoConfig = z.infer<typeof DemoConfig>;

/** Reads `config.json` beside the page; throws with one clear line when it is not there. */
export async function loadConfig(): Promise<DemoConfig> {
  const response = await fetch('./config.json', { cache: 'no-store' });
  if (!response.ok) throw new Error('The demo has no config.json: open it with "npm start".');
  return z.parse(DemoConfig, await response.json());
}
