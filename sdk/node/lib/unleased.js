'use strict'
// What runs without a lease, and although its request is over: what ends a transaction, and other clean-up.
//
// Who refuses a ROLLBACK gives a connection back with its transaction open, and the next request works within that. So
// transaction control passes, in its turn: nothing is said to the daemon, and nothing is aimed at it. For what else has
// to be cleaned up (pg_advisory_unlock, RESET) there is `unleased`.

const { requests } = require('./token')

/** What such statements begin with, and what may come second; anything if that is null. BEGIN also begins a block of
 * statements (MariaDB's BEGIN NOT ATOMIC), which may take long. As in sdk/python/bywash/unleased.py. */
const CONTROL = new Map([
  ...['COMMIT', 'END', 'ROLLBACK', 'ABORT', 'SAVEPOINT', 'RELEASE'].map(word => [word, null]),
  ['START', ['TRANSACTION']],
  ['UNLOCK', ['TABLES', 'TABLE']],
  ['BEGIN', ['', 'WORK', 'TRANSACTION', 'ISOLATION', 'READ', 'DEFERRABLE', // PostgreSQL, MySQL
    'DEFERRED', 'IMMEDIATE', 'EXCLUSIVE', 'CONCURRENT']] // SQLite
])

// One blank or comment at a time: what is one expression tries its pieces in all combinations. What MySQL runs
// (/*! … */, /*M! … */) is no comment.
const BLANK = /\s+|--[^\n]*|#[^\n]*|\/\*(?!M?!).*?\*\//sy
const WORD = /\w*/y

/** What `work` does works for no request: it is not leased, not refused, and not ended. Returns what it returns. */
function unleased (work) {
  return requests.run(undefined, work)
}

/** Whether this is transaction control: a text, or what pg and mysql2 take instead of one. */
function isControl (query) {
  const text = typeof query === 'string' ? query : query?.text ?? query?.sql
  if (typeof text !== 'string') return false
  const statements = bare(text).split(';').map(one => bare(one)).filter(one => one !== '')
  return statements.length > 0 && statements.every(mayPass)
}

function mayPass (statement) {
  const first = wordOf(statement)
  const rest = bare(statement.slice(first.length))
  const seconds = CONTROL.get(first.toUpperCase())
  return seconds !== undefined &&
    (seconds === null || seconds.includes(wordOf(rest).toUpperCase() || rest.slice(0, 1)))
}

/** Without blanks and comments in front. */
function bare (text) {
  let at = 0
  for (BLANK.lastIndex = 0; BLANK.test(text); BLANK.lastIndex = at) at = BLANK.lastIndex
  return text.slice(at)
}

function wordOf (text) {
  WORD.lastIndex = 0
  return WORD.exec(text)[0]
}

module.exports = { isControl, unleased }
