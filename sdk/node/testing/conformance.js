'use strict'
// The vectors of sdk/conformance, which are the same for every language. Its README.md describes
// their format.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')

const FOLDER = join(__dirname, '../../conformance')

/** Returns the vectors of a file that hold for this library. */
function vectors (file, key) {
  const found = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'))[key]
  if (!found?.length) throw new Error(`${file} has no ${key}`)
  return found.filter((vector) => !('node' in (vector.except ?? {})))
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

module.exports = { flat, isMade, microClock, vectors }
