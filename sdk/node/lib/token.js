'use strict'
// The token of one request: may it go on?
//
// States: running, then one of settled (its response has begun), deferred (it asked not to be terminated),
// terminated; from any of them ended. A client who leaves terminates a running or a settled request, for nobody
// reads its response; a deferred one goes on. Time terminates who is told: at a checkpoint, or by a timer if somebody
// has taken the signal. Whoever never asks is done too late at worst, and was served.
//
// `notBefore` makes a checkpoint cheap: the moment before which nothing can terminate this request. A threshold
// changes only at the end of an interval and never falls below runMin, so until then the clock decides alone. It
// is also when a timer has to look again.

const { AsyncLocalStorage } = require('node:async_hooks')

/** This request is over: whoever works for it stops. `status` and `headers` are what makes an answer of it. */
class Terminated extends Error {
  constructor (className, reason, retryAfter) {
    super(`class ${className}: ${reason}`)
    this.name = 'Terminated'
    this.className = className
    /** The gateway's words (crates/engine/src/reason.rs), and `deadline`, which only the application knows. */
    this.reason = reason
    this.retryAfter = retryAfter
    this.status = this.statusCode = 504
    this.headers = { 'Cache-Control': 'no-store' }
    // A deadline says nothing of when to come again.
    if (reason === 'ran_too_long') this.headers['Retry-After'] = String(this.retryAfterSeconds)
  }

  get retryAfterSeconds () {
    return Math.max(Math.ceil(this.retryAfter / 1000), 1)
  }
}

// The longest that Node's timers take; beyond they fire at once.
const LONGEST = 2 ** 31 - 1

// A gateway in front closes the connection a moment before the time is over here: who leaves in the rest of the time
// after this part of it has come to his deadline.
const NEARLY = 0.9

/** One request. */
class Token {
  #of
  #clock
  #own
  #came
  #state = 'running'
  #isOver = false
  #notBefore = 0
  #timer
  #abort
  // How many leases it holds.
  #held = 0
  #passedOn
  #sentries = new Set()

  constructor (of, clock, left, request, passedOn) {
    const now = clock()
    this.#of = of
    this.#clock = clock
    /** When it began, by the controller's clock. */
    this.start = now
    /** Why it is terminated, once it has been told. */
    this.reason = null
    /** The name that the request came with, if it had one that is taken: what it leases connections with. */
    this.request = request
    this.#passedOn = passedOn
    this.#own = now + Math.max(left, 0)
    of.arrived(now)
    of.running++
    // The interval that it counts in.
    this.#came = of.since
    this.#lookAgain(now)
  }

  get className () {
    return this.#of.settings.name
  }

  /** Aborts once it is terminated, with the `Terminated` as its reason. Who takes it is told by a timer. */
  get signal () {
    if (!this.#abort) {
      this.#abort = new AbortController()
      if (this.#state === 'terminated') this.#abort.abort(this.terminated())
      else if (!this.look()) this.#watch()
      // Whoever waits for it keeps the process alive.
      this.#timer?.ref()
    }
    return this.#abort.signal
  }

  /** When it is terminated as things are, by the controller's clock; Infinity if it is not. */
  get deadline () {
    const isBound = this.#state === 'running' || this.#state === 'terminated'
    return isBound ? this.#due(this.#clock()) : Infinity
  }

  /** Whether it is over; also once it is overdue and has not been told. Asking changes nothing. */
  get isTerminated () {
    return this.#state === 'terminated' || this.#isOverdue(this.#clock())
  }

  /** Milliseconds that are left to it, as things are. */
  left () {
    return this.#state === 'terminated' ? 0 : Math.max(this.deadline - this.#clock(), 0)
  }

  /** Throws `Terminated` if this request is over. */
  checkpoint () {
    if (this.#clock() < this.#notBefore) return
    this.look()
    if (this.#state === 'terminated') throw this.terminated()
  }

  /** The last checkpoint: from here on nothing terminates this request. Before a write, for one. */
  cancelTermination () {
    this.look()
    if (this.#state === 'terminated') throw this.terminated()
    if (this.#state !== 'running' && this.#state !== 'settled') return
    this.#becomes('deferred')
    this.#of.totals.deferred++
  }

  /** Terminates it if it is overdue. Whether that was now. */
  look () {
    const now = this.#clock()
    if (!this.#isOverdue(now)) return false
    this.#terminate(this.#own <= this.#due(now) ? 'deadline' : 'ran_too_long', now)
    return true
  }

  /** The first byte of its response goes out: no time terminates it any more. */
  settle () {
    if (this.#state === 'running') this.#becomes('settled')
  }

  /** Its client has left. */
  leave () {
    if (this.#state !== 'running' && this.#state !== 'settled') return
    const now = this.#clock()
    // No time ends a settled one.
    const isSpent = this.#state === 'running' && now >= this.start + NEARLY * (this.#own - this.start)
    this.#terminate(isSpent ? 'deadline' : 'client_left', now)
  }

  /** Its response is complete, or nobody works for it any more. Once is enough, twice is no harm. */
  end () {
    if (this.#isOver) return
    this.#isOver = true
    this.#of.running--
    // Whoever still works for one that was terminated is still to be told.
    if (this.#state !== 'terminated') this.#becomes('ended')
  }

  /**
   * Whether something may be leased for it; then `sentry` is told when it is over. For a wrapper of a database. Not for
   * one that is over, nor for one that nothing ends any more.
   */
  leasesWith (sentry) {
    if (this.#state !== 'running' && this.#state !== 'settled') return false
    this.#sentries.add(sentry)
    return true
  }

  /** It has a lease: somebody looks whether it is over, as a query that waits asks nothing. */
  holds () {
    this.#held++
    this.#watch()
  }

  letsGo () {
    this.#held--
  }

  /** The stop daemon says that it is over: what is thrown, unless nothing ends it any more. */
  stopped (reason) {
    if (this.#state === 'running' || this.#state === 'settled') {
      // The daemon need not be told.
      this.#sentries.clear()
      this.#terminate(reason, this.#clock())
    }
    return this.told()
  }

  /** What is thrown at whoever works for it, if it is over and that has been said. */
  told () {
    return this.#state === 'terminated' ? this.terminated() : null
  }

  /** Milliseconds until time ends it at the latest, whatever becomes of the threshold; Infinity if time does not. */
  latest () {
    if (this.#state !== 'running') return Infinity
    return Math.min(this.start + this.#of.settings.runMax, this.#own) - this.#clock()
  }

  /** The fields for a call to another service: whose it is, and what time is left to it. */
  outgoing () {
    const left = this.left()
    const deadline = left === Infinity ? {} : { 'bywash-deadline': String(Math.floor(left)) }
    return { ...this.#passedOn, ...deadline }
  }

  /** What is thrown. */
  terminated () {
    const { name, retryAfter } = this.#of.settings
    return new Terminated(name, this.reason, retryAfter)
  }

  /** From now on a timer looks whenever it may be overdue, while there is somebody to be told. */
  #watch () {
    if (this.#state !== 'running' || this.#timer !== undefined) return
    const wait = Math.min(Math.max(this.#notBefore - this.#clock(), 0), LONGEST)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      // The timer's clock may be a little ahead, or the threshold has changed: then it looks again.
      if ((this.#abort || this.#held > 0) && !this.look()) this.#watch()
    }, wait)
    if (!this.#abort) this.#timer.unref()
  }

  #isOverdue (now) {
    if (this.#state !== 'running' || now < this.#notBefore) return false
    if (now >= this.#due(now)) return true
    this.#lookAgain(now)
    return false
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

  #terminate (reason, now) {
    this.#becomes('terminated')
    this.#notBefore = 0
    this.reason = reason
    this.#of.totals[reason]++
    if (reason !== 'client_left' && now >= this.start + this.#of.settings.runMin) this.#of.lost(now)
    else this.#of.departed(this.#came, now)
    for (const sentry of this.#sentries) sentry.stop(this.request, reason)
    this.#sentries.clear()
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

/** The fields for a call to another service, on behalf of the request that this code works for; else none. */
function outgoing () {
  return current()?.outgoing() ?? {}
}

module.exports = { Terminated, Token, checkpoint, current, outgoing, requests }
