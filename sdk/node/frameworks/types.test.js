'use strict'
// Tests that the types compile in TypeScript's strict mode, by themselves and in handlers of each
// framework.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { copyFileSync, mkdtempSync, rmSync, symlinkSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')
const { test } = require('node:test')

/** Compiles a file in a folder in which the packages are installed. */
function compile (t, file, ...options) {
  // TypeScript looks for packages in the folders above a file, and not in NODE_PATH.
  const packages = dirname(dirname(require.resolve('typescript/package.json')))
  const folder = mkdtempSync(join(tmpdir(), 'bywash-'))
  t.after(() => rmSync(folder, { recursive: true }))
  symlinkSync(packages, join(folder, 'node_modules'))
  copyFileSync(join(__dirname, '../index.d.ts'), join(folder, 'bywash.d.ts'))
  copyFileSync(join(__dirname, 'types.ts'), join(folder, 'types.ts'))
  const args = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', ...options, file]
  const { status, stdout, stderr } = spawnSync(join(packages, '.bin/tsc'), args, { cwd: folder, encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
}

test('the types compile', (t) => compile(t, 'bywash.d.ts'))

// Errors within the packages of others are skipped.
test('handlers of each framework compile', (t) => compile(t, 'types.ts', '--skipLibCheck'))
