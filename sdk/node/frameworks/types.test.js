'use strict'
// Tests that the types compile in TypeScript's strict mode, by themselves and in handlers of each
// framework.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('node:test')
const { compiled } = require('../testing/typescript')

test('the types compile', () => compiled("export * from 'bywash'"))

// Errors within the packages of others are skipped.
test('handlers of each framework compile', () =>
  compiled(readFileSync(join(__dirname, 'types.ts'), 'utf8'), { skipLibCheck: true }))
