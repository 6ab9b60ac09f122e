'use strict'
// Statements that run without a lease, even if their request is over: transaction control, and
// other clean-up.
//
// If a ROLLBACK were refused, the connection would go back to its pool with its transaction open,
// and the next request would work within that transaction. Therefore transaction control runs when
// it is its turn: no line is sent to the daemon, and no cancellation is aimed at it. `unleased`
// does the same for other clean-up (pg_advisory_unlock, RESET).

const { requests } = require('./token')

/**
 * The words that statements of transaction control begin with, and those that may come second; null
 * allows any. BEGIN also begins a block of statements (MariaDB's BEGIN NOT ATOMIC), which may run
 * for long. The words are the same in every language: sdk/conformance/statements.json.
 */
const CONTROL = new Map([
  ...['COMMIT', 'END', 'ROLLBACK', 'ABORT', 'SAVEPOINT', 'RELEASE'].map(word => [word, null]),
  ['START', ['TRANSACTION']],
  ['UNLOCK', ['TABLES', 'TABLE']],
  ['BEGIN', ['', 'WORK', 'TRANSACTION', 'ISOLATION', 'READ', 'DEFERRABLE', // PostgreSQL, MySQL
    'DEFERRED', 'IMMEDIATE', 'EXCLUSIVE', 'CONCURRENT']] // SQLite
])

// It matches one blank or comment at a time: a single expression for all would backtrack over all
// combinations. Only ASCII has blanks for a database, and every character beyond it belongs to a
// word. Texts that MySQL executes (/*! … */, /*M! … */) are not comments.
const BLANK = /[ \t\r\n\f\v]+|--[^\n]*|#[^\n]*|\/\*(?!M?!).*?\*\//sy
const WORD = /[\w\u0080-\uffff]*/y

/**
 * Runs `work` outside of any request: its statements are not leased, not refused, and not
 * cancelled. They are not counted as `unnamed`. Returns its result.
 */
function unleased (work) {
  return requests.run(null, work)
}

/**
 * Returns whether a query is transaction control. The query is a text, or an object that pg or
 * mysql2 accept instead.
 */
function isControl (query) {
  const text = typeof query === 'string' ? query : query?.text ?? query?.sql
  if (typeof text !== 'string') return false
  const statements = [...statementsOf(text)]
  return statements.length > 0 && statements.every(mayPass)
}

function * statementsOf (text) {
  for (let rest = bare(text); rest !== '';) {
    // A semicolon in a comment in front has gone with the comment.
    const [statement] = rest.split(';', 1)
    if (statement !== '') yield statement
    rest = bare(rest.slice(statement.length + 1))
  }
}

function mayPass (statement) {
  const first = wordOf(statement)
  const rest = bare(statement.slice(first.length))
  const seconds = CONTROL.get(first.toUpperCase())
  return seconds !== undefined &&
    (seconds === null || seconds.includes(wordOf(rest).toUpperCase() || rest.slice(0, 1)))
}

/** Removes the blanks and comments in front of a text. */
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
