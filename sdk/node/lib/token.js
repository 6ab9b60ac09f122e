'use strict'
// The token of one request, which says whether the request may go on.
//
// States: a request is first running. Then it becomes settled (its response has begun), deferred
// (it asked not to be terminated) or terminated. From any of these states it becomes ended. When
// its client leaves, a running or settled request is terminated, because its response will not be
// read. A deferred request goes on. Time terminates a request only when its handler is notified: at
// a checkpoint, or by a timer if the handler has read the signal. A request without either is
// finished too late at worst, and counts as served.
//
// `notBefore` makes a checkpoint cheap: before that time nothing but the client and the stop daemon
// can terminate the request. A threshold changes only at the end of an interval and never falls
// below runMin, so until then the clock alone decides. A timer must check again at that time.

const { AsyncLocalStorage } = require('node:async_hooks')

/**
 * The error of a request that is over: all work for it should stop. Frameworks make an answer of
 * `status` and `headers`.
 */
class Terminated extends Error {
  constructor (className, reason, retryAfter) {
    super(`class ${className}: ${reason}`)
    this.name = 'Terminated'
    this.className = className
    /**
     * The reason. It is one of the gateway's names (crates/engine/src/reason.rs) or `deadline`,
     * which only the application knows.
     */
    this.reason = reason
    this.retryAfter = retryAfter
    this.status = this.statusCode = 504
    this.headers = { 'Cache-Control': 'no-store' }
    // A deadline says nothing about when to retry.
    if (reason === 'ran_too_long') this.headers['Retry-After'] = String(this.retryAfterSeconds)
  }

  get retryAfterSeconds () {
    return Math.max(Math.ceil(this.retryAfter / 1000), 1)
  }
}

// The longest time that Node's timers accept; longer ones fire at once.
const LONGEST = 2 ** 31 - 1

// A gateway in front closes the connection a moment before the deadline here. So a request whose
// client leaves after this fraction of its time counts as ended by its deadline.
const NEARLY = 0.9

/** The handle of one request. */
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
  // The number of leases that the request holds.
  #held = 0
  #passedOn
  #stopClients = new Set()

  constructor (of, clock, left, request, passedOn) {
    const now = clock()
    this.#of = of
    this.#clock = clock
    /** The begin of the request in milliseconds, by the controller's clock. */
    this.start = now
    /** Why the request was terminated; null until its handler has been notified. */
    this.reason = null
    /**
     * The name of the request, or null if it has none. Its connections are leased under this name.
     */
    this.request = request
    this.#passedOn = passedOn
    this.#own = now + Math.max(left, 0)
    of.arrived(now)
    of.running++
    // The interval in which its arrival counts.
    this.#came = of.since
    this.#lookAgain(now)
  }

  get className () {
    return this.#of.settings.name
  }

  /**
   * An `AbortSignal` that aborts when the request is terminated, with the `Terminated` as its
   * reason. Once a handler has read the signal, a timer checks whether the request is overdue.
   */
  get signal () {
    if (!this.#abort) {
      this.#abort = new AbortController()
      if (this.#state === 'terminated') this.#abort.abort(this.terminated())
      else if (!this.look()) this.#watch()
      // Work that waits for the signal keeps the process alive.
      this.#timer?.ref()
    }
    return this.#abort.signal
  }

  /**
   * The time, by the controller's clock in milliseconds, at which the request will be terminated at
   * the present threshold. It is Infinity if no time terminates the request.
   */
  get deadline () {
    const isBound = this.#state === 'running' || this.#state === 'terminated'
    return isBound ? this.#due(this.#clock()) : Infinity
  }

  /**
   * Whether the request is over, even if it is overdue and its handler has not been notified yet.
   * Reading this property changes nothing.
   */
  get isTerminated () {
    return this.#state === 'terminated' || this.#isOverdue(this.#clock())
  }

  /** Returns the number of milliseconds that are left to the request at the present threshold. */
  left () {
    return this.#state === 'terminated' ? 0 : Math.max(this.deadline - this.#clock(), 0)
  }

  /** Throws `Terminated` if this request is over. */
  checkpoint () {
    if (this.#clock() < this.#notBefore) return
    this.look()
    if (this.#state === 'terminated') throw this.terminated()
  }

  /**
   * Ensures that nothing terminates this request from now on. Throws `Terminated` if the request is
   * over already. Call it before a write, for example.
   */
  cancelTermination () {
    this.look()
    if (this.#state === 'terminated') throw this.terminated()
    if (this.#state !== 'running' && this.#state !== 'settled') return
    this.#becomes('deferred')
    this.#of.totals.deferred++
  }

  /** Terminates the request if it is overdue. Returns whether this call did so. */
  look () {
    const now = this.#clock()
    if (!this.#isOverdue(now)) return false
    this.#terminate(this.#own <= this.#due(now) ? 'deadline' : 'ran_too_long', now)
    return true
  }

  /**
   * Records that the first byte of the response is sent. From then on no time terminates the
   * request.
   */
  settle () {
    if (this.#state === 'running') this.#becomes('settled')
  }

  /** Records that the client has left, which terminates a running or settled request. */
  leave () {
    if (this.#state !== 'running' && this.#state !== 'settled') return
    const now = this.#clock()
    // No time ends a settled request.
    const isSpent = this.#state === 'running' && now >= this.start + NEARLY * (this.#own - this.start)
    this.#terminate(isSpent ? 'deadline' : 'client_left', now)
  }

  /**
   * Records that the response is complete, or that all work for the request is over. Further calls
   * have no effect.
   */
  end () {
    if (this.#isOver) return
    this.#isOver = true
    this.#of.running--
    // A terminated request keeps its state: other work for it must learn of it.
    if (this.#state !== 'terminated') this.#becomes('ended')
  }

  /**
   * Returns whether connections may be leased for the request. If so, the token notifies
   * `stopClient` when the request is over. Wrappers of databases use this. Nothing is leased if the
   * request is over, or if nothing ends it any more.
   */
  leasesWith (stopClient) {
    if (this.#state !== 'running' && this.#state !== 'settled') return false
    this.#stopClients.add(stopClient)
    return true
  }

  /**
   * Counts a lease of the request. While there is one, a timer checks whether the request is over,
   * since a waiting query calls no checkpoint.
   */
  holds () {
    this.#held++
    this.#watch()
  }

  letsGo () {
    this.#held--
  }

  /**
   * Records that the stop daemon has stopped the request. Returns the error to throw, or null if
   * nothing ends the request any more.
   */
  stopped (reason) {
    if (this.#state === 'running' || this.#state === 'settled') {
      // The daemon need not be told.
      this.#stopClients.clear()
      this.#terminate(reason, this.#clock())
    }
    return this.told()
  }

  /**
   * Returns the error to throw if the request is over and its handler has been notified; otherwise
   * null.
   */
  told () {
    return this.#state === 'terminated' ? this.terminated() : null
  }

  /**
   * Returns the number of milliseconds after which time ends the request at the latest, at any
   * threshold. Returns Infinity if time does not end it.
   */
  latest () {
    if (this.#state !== 'running') return Infinity
    return Math.min(this.start + this.#of.settings.runMax, this.#own) - this.#clock()
  }

  /**
   * Returns the header fields for a call to another service: the request's name and trace, and the
   * time that is left.
   */
  outgoing () {
    const left = this.left()
    const deadline = left === Infinity ? {} : { 'bywash-deadline': String(Math.floor(left)) }
    return { ...this.#passedOn, ...deadline }
  }

  /** Returns the `Terminated` of this request. */
  terminated () {
    const { name, retryAfter } = this.#of.settings
    return new Terminated(name, this.reason, retryAfter)
  }

  /**
   * Starts a timer that checks the request whenever it may be overdue, as long as a signal or a
   * lease needs the timer.
   */
  #watch () {
    if (this.#state !== 'running' || this.#timer !== undefined) return
    const wait = Math.min(Math.max(this.#notBefore - this.#clock(), 0), LONGEST)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      // The timer's clock may be a little ahead, or the threshold may have changed: then look
      // again.
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
    for (const stopClient of this.#stopClients) stopClient.stop(this.request, reason)
    this.#stopClients.clear()
    this.#abort?.abort(this.terminated())
  }
}

/** The token of the request that code works for. It is null within `unleased`. */
const requests = new AsyncLocalStorage()

/**
 * Returns the token of the request that the calling code works for, or undefined if there is none.
 */
function current () {
  return requests.getStore() ?? undefined
}

/** Throws `Terminated` if the current request is over; does nothing outside of a request. */
function checkpoint () {
  current()?.checkpoint()
}

/**
 * Returns the header fields for a call to another service on behalf of the current request; else no
 * fields.
 */
function outgoing () {
  return current()?.outgoing() ?? {}
}

module.exports = { Terminated, Token, checkpoint, current, outgoing, requests }
