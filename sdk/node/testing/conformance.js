'use strict'
// The vectors of sdk/conformance and the golden values, which are the same for every language.
// sdk/conformance/README.md describes the format of the vectors.

const { existsSync, readFileSync } = require('node:fs')
const { join } = require('node:path')

// scripts/test-packages copies the files next to the tests of a package. The repository has them
// above this package.
const DATA = join(__dirname, 'data')
const ROOT = existsSync(DATA) ? DATA : join(__dirname, '../../..')
const FOLDER = join(ROOT, 'sdk/conformance')
const GOLDEN = join(ROOT, 'lab/golden/termination.csv')

/** The fields that each vector may have, and those of the vectors of each list. */
const COMMON = ['why', 'source', 'except', 'in_memory']
const FIELDS = {
  'names.json': { requests: ['values', 'name', 'trusts_names'], databases: ['name', 'is_valid'] },
  'deadlines.json': { requests: ['values', 'left_ms', 'trusts_deadlines'] },
  'outgoing.json': { requests: ['fields', 'after_ms', 'settles', 'outgoing', 'trusts_names'] },
  'answers.json': {
    answers: ['reason', 'retry_after_ms', 'method', 'accept', 'status', 'fields', 'text', 'problem']
  },
  'statements.json': { statements: ['text', 'is_control'] },
  'controller.json': { sequences: ['steps'] },
  'leases.json': { transcripts: ['answers', 'daemon', 'steps'] },
  'stops.json': { transcripts: ['answers', 'daemon', 'steps'] }
}

/** Returns the vectors of a file that hold for this library. */
function vectors (file, key) {
  const lists = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'))
  areKnown(lists, ['about', ...Object.keys(FIELDS[file])], file)
  const found = lists[key]
  if (!found?.length) throw new Error(`${file} has no ${key}`)
  for (const vector of found) areKnown(vector, [...COMMON, ...FIELDS[file][key]], `${file}, ${vector.why}`)
  return found.filter((vector) => !('node' in (vector.except ?? {})))
}

/** Throws if an object has a key that is not among the known ones. */
function areKnown (object, known, where) {
  const unknown = Object.keys(object).filter((key) => !known.includes(key))
  if (unknown.length > 0) throw new Error(`${where}: unknown keys: ${unknown}`)
}

/** Returns whether the middleware has made this name, like mod_bywash_sentry. */
function isMade (name) {
  return /^[0-9a-f]{16}$/.test(name)
}

/** Yields the steps, with repeated ones as often as they are repeated. */
function * flat (steps) {
  for (const step of steps) {
    const [name, count, repeated] = step
    if (name !== 'repeat') yield step
    else for (let i = 0; i < count; i++) yield * flat(repeated)
  }
}

/** Returns a clock of whole microseconds that a vector advances, in milliseconds. */
function microClock () {
  let microseconds = 0
  const clock = () => microseconds / 1000
  clock.go = (milliseconds) => { microseconds += Math.round(milliseconds * 1000) }
  return clock
}

module.exports = { GOLDEN, flat, isMade, microClock, vectors }
