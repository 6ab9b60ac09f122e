'use strict'
// What runs without a lease, and although its request is over: what ends a transaction, and other clean-up.
//
// Who refuses a ROLLBACK gives a connection back with its transaction open, and the next request works within that. So
// transaction control passes, in its turn: nothing is said to the daemon, and nothing is aimed at it. For what else has
// to be cleaned up (pg_advisory_unlock, RESET) there is `unleased`.

const { requests } = require('./token')

/** The first word of a text that passes, as in sdk/python/bywash/unleased.py. */
const CONTROL = new Set(['BEGIN', 'START', 'COMMIT', 'END', 'ROLLBACK', 'SAVEPOINT', 'RELEASE', 'ABORT', 'UNLOCK'])

// One blank or comment at a time: what is one expression tries its pieces in all combinations.
const BLANK = /[\s;]+|--[^\n]*|#[^\n]*|\/\*.*?\*\//sy
const WORD = /[A-Za-z_]+/y

/** What `work` does works for no request: it is not leased, not refused, and not ended. Returns what it returns. */
function unleased (work) {
  return requests.run(undefined, work)
}

/** Whether this is transaction control: a text, or what pg and mysql2 take instead of one. */
function isControl (query) {
  const text = typeof query === 'string' ? query : query?.text ?? query?.sql
  if (typeof text !== 'string') return false
  let at = 0
  for (BLANK.lastIndex = 0; BLANK.test(text); BLANK.lastIndex = at) at = BLANK.lastIndex
  WORD.lastIndex = at
  return CONTROL.has(WORD.exec(text)?.[0].toUpperCase())
}

module.exports = { isControl, unleased }
