'use strict'
// Compiles TypeScript in strict mode, with the types of this package and the installed packages.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')

const OPTIONS = { strict: true, module: 'nodenext', target: 'es2022', types: ['node'], paths: { bywash: ['./bywash.d.ts'] } }

/** Compiles a text, and returns the JavaScript. `options` are those of the compiler. */
function compiled (text, options = {}) {
  // TypeScript looks for packages in the folders above a file, and not in NODE_PATH.
  const packages = dirname(dirname(require.resolve('typescript/package.json')))
  const folder = mkdtempSync(join(tmpdir(), 'bywash-'))
  try {
    symlinkSync(packages, join(folder, 'node_modules'))
    copyFileSync(join(__dirname, '../index.d.ts'), join(folder, 'bywash.d.ts'))
    writeFileSync(join(folder, 'text.ts'), text)
    const config = { compilerOptions: { ...OPTIONS, ...options }, files: ['text.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const { status, stdout, stderr } = spawnSync(join(packages, '.bin/tsc'), { cwd: folder, encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
    return readFileSync(join(folder, 'text.js'), 'utf8')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

module.exports = { compiled }
