'use strict'
// The stop daemon (`bywash sentry`), as one process talks to it: over one conversation, which is never needed.
//
// Source: crates/lease/src/lib.rs, and sdk/README.md, "Down to the query". Lines over a UNIX socket, and answers by
// their numbers, in any order. A conversation is made when somebody first asks, and anew no sooner than 200 ms after
// one was over or nobody was there. It is over, for good, when the daemon closes, says what is no answer, or owes one
// for 100 ms. Its socket and timers keep no process alive.

const { connect } = require('node:net')

const SOCKET = '/run/bywash-sentry/sentry.sock'

/** Milliseconds in which the daemon answers (a test of something else has more), and until it is looked for again. */
const PATIENCE = 100
const AGAIN = 200

/** Answers that are waited for at once, bytes that are not sent, and bytes of a line. */
const MOST_ASKED = 4096
const MOST_UNSENT = MOST_ASKED * 512
const LONGEST = 1024

const REASONS = ['ran_too_long', 'client_left', 'deadline']

/** What is said once if it happens. */
const WARNINGS = {
  unnamed: () => 'a query runs outside of a named request, and nothing can stop it: is the middleware around its handler?',
  unreachable: (path) => `no stop daemon answers at ${path}; queries run, and are not cancelled`
}

/** What cannot be said gets this as its answer; null is no answer to what was. */
const UNSAID = ''

/** One connection to the daemon. Not for users. */
class Conversation {
  #socket
  #asked = new Map()
  #number = 0
  #came = ''
  #isConnected = false
  isOver = false

  constructor (path, patience, onEnd) {
    this.patience = patience
    this.onEnd = onEnd
    this.#socket = connect(path)
    this.#socket.setEncoding('latin1')
    this.#socket.on('connect', () => { this.#isConnected = true })
    this.#socket.on('data', (text) => { if (!this.#hear(text)) this.end() })
    this.#socket.on('error', () => this.end())
    this.#socket.on('close', () => this.end())
    this.#socket.unref()
  }

  /** Says it; the answer comes soon. */
  ask (words) {
    return new Promise((resolve) => {
      if (!this.say(words)) return resolve(UNSAID)
      const number = this.#number
      // What has come while this thread was busy is read before.
      const timer = setTimeout(() => setImmediate(() => { if (this.#asked.has(number)) this.end() }), this.patience)
      timer.unref()
      this.#asked.set(number, { resolve, timer })
    })
  }

  /** Says it; nobody waits for the answer, but it may be `heard`. Whether it could be said. */
  say (words, heard) {
    if (this.isOver || this.#asked.size >= MOST_ASKED || this.#socket.writableLength > MOST_UNSENT) return false
    this.#socket.write(`${++this.#number} ${words}\n`)
    if (heard) this.#asked.set(this.#number, { resolve: heard })
    return true
  }

  /** It is over. Once is enough, twice is no harm. */
  end () {
    if (this.isOver) return
    this.isOver = true
    this.#socket.destroy()
    this.onEnd()
    for (const { resolve, timer } of this.#asked.values()) {
      clearTimeout(timer)
      resolve(this.#isConnected ? null : UNSAID)
    }
    this.#asked.clear()
  }

  #hear (text) {
    const lines = (this.#came + text).split('\n')
    this.#came = lines.pop()
    return this.#came.length <= LONGEST && lines.every((line) => this.#said(line))
  }

  #said (line) {
    const [, number, words] = /^([0-9]{1,16}) ((?:OK|ERR)(?: .*)?|STOPPED [a-z_]+)$/.exec(line) ?? []
    // Of 0 only who leases `self` hears, and here nobody does.
    if (number === undefined || Number(number) === 0 || Number(number) > this.#number) return false
    if (words.startsWith('STOPPED') && stopped(words) === null) return false
    const asked = this.#asked.get(Number(number))
    if (asked) {
      this.#asked.delete(Number(number))
      clearTimeout(asked.timer)
      asked.resolve(words)
    }
    return true
  }
}

/** The stop daemon at `path`, else at BYWASH_SENTRY, else at /run/bywash-sentry/sentry.sock. One for each process. */
class Sentry {
  #conversation = null
  #notBefore = -Infinity
  #counts = { leased: 0, unnamed: 0, unreachable: 0, refused: 0, stopped: 0, taken: 0, spoiled: 0, stops: 0 }

  constructor (path = process.env.BYWASH_SENTRY || SOCKET, { clock, patience } = {}) {
    this.path = path
    this.clock = clock ?? (() => performance.now())
    this.patience = patience ?? PATIENCE
  }

  /** The present conversation, if there is one; never waits. For a wrapper of a database. */
  conversation () {
    if (this.#conversation === null && this.clock() >= this.#notBefore) {
      const made = new Conversation(this.path, this.patience, () => {
        this.#conversation = null
        this.#notBefore = this.clock() + AGAIN
      })
      this.#conversation = made
    }
    return this.#conversation
  }

  /**
   * What this process has leased for this request shall stop. Only that (`scope=own`): whoever called it works on under
   * the same name, and what he called elsewhere as well.
   */
  stop (request, reason) {
    this.conversation()?.say(`STOP ${request} ${reason} scope=own`, (answer) => {
      if (answer) this.count(answer.startsWith('OK') ? 'stops' : 'refused')
    })
  }

  /** One more of these. The first of a kind that tells of a wrong set-up is a warning. */
  count (what) {
    if (++this.#counts[what] > 1 || !(what in WARNINGS)) return
    process.emitWarning(WARNINGS[what](this.path), 'BywashWarning')
  }

  /** What was said, in numbers, since the start. */
  stats () {
    return { ...this.#counts }
  }

  /** Ends the conversation. Who asks later begins another. */
  close () {
    this.#conversation?.end()
  }
}

/** Why its request was stopped, if an answer to a lease says so. */
function stopped (words) {
  const [verb, reason] = (words ?? '').split(' ')
  return verb === 'STOPPED' && REASONS.includes(reason) ? reason : null
}

module.exports = { Sentry, UNSAID, stopped }
