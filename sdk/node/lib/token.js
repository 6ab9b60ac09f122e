'use strict'
// The token of one request: may it go on?
//
// States: running, then one of settled (its response has begun), deferred (it asked not to be terminated),
// terminated; from any of them ended. A client who leaves terminates a running or a settled request, for nobody
// reads its response; a deferred one goes on.
//
// `notBefore` makes a checkpoint cheap: the moment before which nothing can terminate this request. A threshold
// changes only at the end of an interval and never falls below runMin, so until then the clock decides alone. It
// is also when a timer has to look again.

const { AsyncLocalStorage } = require('node:async_hooks')

/** This request is over: whoever works for it stops. Express answers with its `status` and `headers`. */
class Terminated extends Error {
  constructor (className, reason, retryAfter) {
    super(`class ${className}: ${reason}`)
    this.name = 'Terminated'
    this.className = className
    /** The gateway's words (crates/engine/src/reason.rs), and `deadline`, which only the application knows. */
    this.reason = reason
    this.retryAfter = retryAfter
    this.status = this.statusCode = 504
    this.headers = { 'Retry-After': String(this.retryAfterSeconds) }
  }

  get retryAfterSeconds () {
    return Math.max(Math.ceil(this.retryAfter / 1000), 1)
  }
}

// The longest that Node's timers take; beyond they fire at once.
const LONGEST = 2 ** 31 - 1

/** One request. */
class Token {
  #of
  #clock
  #own
  #state = 'running'
  #isOver = false
  #notBefore = 0
  #timer
  #abort

  constructor (of, clock, left) {
    const now = clock()
    this.#of = of
    this.#clock = clock
    /** When it began, by the controller's clock. */
    this.start = now
    /** Why it is terminated, if it is. */
    this.reason = null
    this.#own = now + Math.max(left, 0)
    of.arrived(now)
    of.running++
    this.#lookAgain(now)
  }

  get className () {
    return this.#of.settings.name
  }

  /** Aborts once it is terminated, with the `Terminated` as its reason. */
  get signal () {
    this.#abort ??= new AbortController()
    if (this.#state === 'terminated' && !this.#abort.signal.aborted) this.#abort.abort(this.terminated())
    return this.#abort.signal
  }

  /** When it is terminated as things are, by the controller's clock; Infinity if it is not. */
  get deadline () {
    const isBound = this.#state === 'running' || this.#state === 'terminated'
    return isBound ? this.#due(this.#clock()) : Infinity
  }

  /** Whether it is over; also once it is overdue and nobody has noticed. */
  get isTerminated () {
    this.look()
    return this.#state === 'terminated'
  }

  /** Milliseconds that are left to it, as things are. */
  left () {
    return this.#state === 'terminated' ? 0 : Math.max(this.deadline - this.#clock(), 0)
  }

  /** Throws `Terminated` if this request is over. */
  checkpoint () {
    if (this.#clock() >= this.#notBefore && this.isTerminated) throw this.terminated()
  }

  /** The last checkpoint: from here on nothing terminates this request. Before a write, for one. */
  cancelTermination () {
    if (this.isTerminated) throw this.terminated()
    if (this.#state !== 'running' && this.#state !== 'settled') return
    this.#becomes('deferred')
    this.#of.totals.deferred++
  }

  /** Terminates it if it is overdue. Whether that was now. */
  look () {
    const now = this.#clock()
    if (this.#state !== 'running' || now < this.#notBefore) return false
    const due = this.#due(now)
    if (now < due) {
      this.#lookAgain(now)
      return false
    }
    if (this.#own <= due) {
      this.#terminate('deadline')
    } else {
      this.#of.lost(now)
      this.#terminate('ran_too_long')
    }
    return true
  }

  /** The first byte of its response goes out: no time terminates it any more. */
  settle () {
    if (this.#state === 'running') this.#becomes('settled')
  }

  /** Its client has left. */
  leave () {
    if (this.#state === 'running' || this.#state === 'settled') this.#terminate('client_left')
  }

  /** Its response is complete, or nobody works for it any more. Once is enough, twice is no harm. */
  end () {
    if (this.#isOver) return
    this.#isOver = true
    this.#of.running--
    // Whoever still works for one that was terminated is still to be told.
    if (this.#state !== 'terminated') this.#becomes('ended')
  }

  /** From now on a timer looks whenever it may be overdue. */
  watch () {
    if (this.#state !== 'running' || this.#isOver) return
    const wait = Math.min(Math.max(this.#notBefore - this.#clock(), 0), LONGEST)
    // The timer's clock may be a little ahead, or the threshold has changed: then it looks again.
    this.#timer = setTimeout(() => this.look() || this.watch(), wait)
  }

  /** What is thrown. */
  terminated () {
    const { name, retryAfter } = this.#of.settings
    return new Terminated(name, this.reason, retryAfter)
  }

  #due (now) {
    return Math.min(this.start + this.#of.threshold(now), this.#own)
  }

  #lookAgain (now) {
    this.#notBefore = Math.min(this.#due(now), Math.max(this.#of.until, this.start + this.#of.settings.runMin))
  }

  #becomes (state) {
    this.#state = state
    this.#notBefore = Infinity
    clearTimeout(this.#timer)
  }

  #terminate (reason) {
    this.#becomes('terminated')
    this.#notBefore = 0
    this.reason = reason
    this.#of.totals[reason]++
    this.#abort?.abort(this.terminated())
  }
}

const requests = new AsyncLocalStorage()

/** The token of the request that this code works for, if it has one. */
function current () {
  return requests.getStore()
}

/** Throws `Terminated` if the request that this code works for is over; nothing if it works for none. */
function checkpoint () {
  current()?.checkpoint()
}

module.exports = { Terminated, Token, checkpoint, current, requests }
