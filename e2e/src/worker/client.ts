/* The worker: the client, its queue and its documents. */
import { createClient } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { pagePresence, serveClient } from '@afield/client/worker';
import { setParent } from '@afield/contacts';

const presence = pagePresence();
serveClient(createClient({ name: 'in-worker', PouchDB, actions: [setParent], environment: { presence } }));
