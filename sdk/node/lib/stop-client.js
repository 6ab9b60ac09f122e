'use strict'
// The client of the stop daemon (`bywash stopd`): it holds the one conversation of this process
// with the daemon. The daemon is optional.
//
// Source: crates/lease/src/lib.rs, and sdk/README.md, "Down to the query". The conversation
// consists of numbered lines over a UNIX socket, answered in any order. It begins when it is first
// needed. After it has ended, or if no daemon was found, it begins again no sooner than 200 ms
// later. The conversation is over, permanently, when the daemon closes it, sends a line that is not
// an answer, or owes an answer for 100 ms. Its socket and timers do not keep the process alive.

const { connect } = require('node:net')

const SOCKET = '/run/bywash-stopd/stopd.sock'

/** The time in milliseconds within which the daemon must answer. Some tests allow more. */
const PATIENCE = 100
/** The minimum time in milliseconds between two attempts to connect to the daemon. */
const AGAIN = 200

/** The maximum number of answers that are awaited at once. */
const MOST_ASKED = 4096
/** The maximum number of unsent bytes. */
const MOST_UNSENT = MOST_ASKED * 512
/** The maximum length of a line from the daemon, in bytes. */
const LONGEST = 1024

const REASONS = ['ran_too_long', 'client_left', 'deadline']

/** The line to a holder of a lease of `self`. */
const TO_HOLDER = new RegExp(`^0 STOPPED [A-Za-z0-9._:-]{1,128} (?:${REASONS.join('|')}) [0-9]{1,16}$`)

/** Warnings that are emitted once. */
const WARNINGS = {
  unnamed: () => 'a query runs outside of a named request, so nothing can stop it: put the middleware around its handler',
  unreachable: (path) => `no stop daemon answers at ${path}: queries run, and nothing cancels them`
}

/** Returns the warning for the first refused lease or stop. */
const refusal = (path, what, text) =>
  `the stop daemon at ${path} refused a ${what} (later ones are only counted): ${text}`

/**
 * The answer to a line that could not be sent. (null stands for a line that was sent and not
 * answered.)
 */
const UNSAID = ''

/** One conversation with the daemon. Internal. */
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

  /** Sends a line. Resolves to its answer, `UNSAID`, or null. */
  ask (words) {
    return new Promise((resolve) => {
      if (!this.say(words)) return resolve(UNSAID)
      const number = this.#number
      // First read what has come while this thread was busy.
      const timer = setTimeout(() => setImmediate(() => { if (this.#asked.has(number)) this.end() }), this.patience)
      timer.unref()
      this.#asked.set(number, { resolve, timer })
    })
  }

  /**
   * Sends a line without waiting for the answer, which is passed to `heard`. Returns whether the
   * line could be sent.
   */
  say (words, heard) {
    if (this.isOver || this.#asked.size >= MOST_ASKED || this.#socket.writableLength > MOST_UNSENT) return false
    this.#socket.write(`${++this.#number} ${words}\n`)
    if (heard) this.#asked.set(this.#number, { resolve: heard })
    return true
  }

  /** Ends the conversation. Further calls have no effect. */
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
    // This line goes to holders of leases of `self`. A query asks by such a lease (lease.js), and
    // gets the reason by the answer.
    if (TO_HOLDER.test(line)) return true
    const [, number, words] = /^([0-9]{1,16}) ((?:OK|ERR)(?: .*)?|STOPPED [a-z_]+)$/.exec(line) ?? []
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

/**
 * The client of the stop daemon. Its socket is `path`, else the value of BYWASH_STOPD, else
 * /run/bywash-stopd/stopd.sock. A process needs only one client.
 */
class StopClient {
  #conversation = null
  #notBefore = -Infinity
  #numbers = 0
  // What was refused and has had its warning: leases and stops have different causes.
  #warned = new Set()
  #counts = { leased: 0, unnamed: 0, unreachable: 0, refused: 0, stopped: 0, taken: 0, spoiled: 0, stops: 0 }

  constructor (path = process.env.BYWASH_STOPD || SOCKET, { clock, patience } = {}) {
    this.path = path
    this.clock = clock ?? (() => performance.now())
    this.patience = patience ?? PATIENCE
  }

  /**
   * Returns the present conversation, or null if there is none. It never waits. Wrappers of
   * databases use it.
   */
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

  /** Returns a new number for a lease of `self`. Internal. */
  newNumber () {
    return ++this.#numbers
  }

  /**
   * Tells the daemon to stop what this process has leased for the request. The scope is this
   * process's leases (`scope=own`), because callers and called services continue to work under the
   * name of the request.
   */
  stop (request, reason) {
    this.conversation()?.say(`STOP ${request} ${reason} scope=own`, (answer) => {
      if (answer?.startsWith('OK')) this.count('stops')
      else if (answer) this.refused('stop', answer)
    })
  }

  /**
   * Counts a refused lease or stop. Emits a warning with the daemon's text for the first one of
   * each. `STOPPED` counts as a refusal too if nothing may terminate the request any more. It causes
   * no warning, because nothing is wrong with the set-up.
   */
  refused (what, answer) {
    this.count('refused')
    if (this.#warned.has(what) || !answer.startsWith('ERR')) return
    this.#warned.add(what)
    // A line of another program at this socket may have any length and any bytes.
    const text = answer.slice(0, LONGEST).replace(/[^ -~]/g, '?')
    process.emitWarning(refusal(this.path, what, text), 'BywashWarning')
  }

  /**
   * Adds one to a count. If the count indicates a wrong set-up, the first call for it emits a
   * warning.
   */
  count (what) {
    if (++this.#counts[what] > 1 || !(what in WARNINGS)) return
    process.emitWarning(WARNINGS[what](this.path), 'BywashWarning')
  }

  /** Returns the counts since the start. */
  stats () {
    return { ...this.#counts }
  }

  /** Ends the conversation. Later queries begin another. */
  close () {
    this.#conversation?.end()
  }
}

/** Returns the reason of the stop if an answer to a lease says that the request was stopped. */
function stopped (words) {
  const [verb, reason] = (words ?? '').split(' ')
  return verb === 'STOPPED' && REASONS.includes(reason) ? reason : null
}

module.exports = { StopClient, UNSAID, stopped }
