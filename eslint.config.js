import js from '@eslint/js';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** The rooms of packages/client/src, lowest first: a room imports only from rooms before it. */
const rooms = [
  'model',
  'retry',
  'http',
  'store',
  'tabs',
  'queue',
  'actions',
  'lookup',
  'outbox',
  'run',
  'sync',
  'heal',
  'pending',
  'worker',
];

/** What stands above all rooms and imports from them. */
const above = [
  'client',
  'conflict-watch',
  'drained',
  'index',
  'leadership',
  'parts',
  'publications',
  'replication',
  'results',
  'shared-store',
  'shown',
  'status',
  'work',
  'worker',
];

/** The packages, lowest first, with what each may import of ours. */
const packages = {
  'packages/client': [],
  'packages/contacts': ['client'],
  'packages/devserver': [],
  'packages/testing': ['client', 'contacts', 'devserver'],
  'packages/server': ['client', 'devserver'],
  'demo-app': ['client', 'contacts'],
};
const all = ['client', 'contacts', 'devserver', 'testing', 'server', 'inspector'];

const directions = [
  ...rooms.map((room, index) => ({
    files: [`packages/client/src/${room}/**/*.ts`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: [
                ...rooms.slice(index + 1).map((higher) => `**/${higher}/**`),
                ...above.map((name) => `../${name}.js`),
              ],
              message: `${room}/ imports only from rooms below it: ${rooms.slice(0, index).join(', ') || 'none'}.`,
            },
            { group: all.map((name) => `@afield/${name}`), message: 'The client imports none of our packages.' },
          ],
        },
      ],
    },
  })),
  ...Object.entries(packages)
    .filter(([folder]) => folder !== 'packages/client')
    .map(([folder, allowed]) => ({
      files: [`${folder}/src/**/*.ts`],
      rules: {
        'no-restricted-imports': [
          'error',
          {
            patterns: [
              {
                group: all.filter((name) => !allowed.includes(name)).map((name) => `@afield/${name}`),
                message: `${folder} imports only: ${allowed.join(', ') || 'nothing of ours'}.`,
              },
            ],
          },
        ],
      },
    })),
];

export default tseslint.config(
  { ignores: ['**/dist/**', '**/node_modules/**', '.afield/**', '**/test-results/**', '**/playwright-report/**'] },
  js.configs.recommended,
  ...tseslint.configs.strict,
  {
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportDefaultDeclaration', message: 'No default exports: name what is exported.' },
      ],
      'no-eval': 'error',
      'no-implied-eval': 'error',
    },
  },
  { files: ['**/*.config.{js,ts}'], rules: { 'no-restricted-syntax': 'off' } },
  ...directions,
);
