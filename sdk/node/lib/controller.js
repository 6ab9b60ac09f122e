'use strict'
// The controller: for each class, it decides how long a request may run.
//
// Source: paper 2, SERT §3.2, as in crates/engine/src/terminate/loss.rs. Both must agree with
// lab/golden/termination.csv. The fraction p of the requests of a class that arrived in an interval
// was lost: refused, terminated by the threshold, or ended by a deadline after they had run for
// runMin. The threshold of the next interval follows from p. A client that leaves, and a deadline
// before runMin, say nothing about the load. A request that ends in this way in the interval of its
// arrival counts as not arrived.
//
// JavaScript has one thread, so there is no lock. A worker thread has a controller of its own.

const { SettingError, checked, granted } = require('./classes')
const { Token } = require('./token')

/** A class of a controller: its settings, its counts and its threshold. Internal. */
class Granted {
  constructor (settings, now) {
    this.settings = settings
    this.totals = { arrived: 0, lost: 0, ran_too_long: 0, deadline: 0, client_left: 0, deferred: 0 }
    this.running = 0
    this.p = 0
    /** The begin of the present interval, by the controller's clock. */
    this.since = now
    this.nowArrived = this.nowLost = 0
  }

  /** The end of the present interval. The threshold does not change before it. */
  get until () {
    return this.since + this.settings.interval
  }

  tick (now) {
    const passed = Math.floor((now - this.since) / this.settings.interval)
    if (passed < 1) return
    this.since += this.settings.interval * passed
    // Without arrivals nothing was lost in an interval: terminated requests had arrived before it.
    this.p = passed === 1 && this.nowArrived > 0 ? Math.min(this.nowLost / this.nowArrived, 1) : 0
    this.nowArrived = this.nowLost = 0
  }

  threshold (now) {
    this.tick(now)
    return granted(this.settings, this.p)
  }

  arrived (now) {
    this.tick(now)
    this.nowArrived++
    this.totals.arrived++
  }

  /**
   * Uncounts a request that ended without being lost, if it arrived in the present interval. `came`
   * is the begin of the interval in which it arrived.
   */
  departed (came, now) {
    this.tick(now)
    if (came === this.since) this.nowArrived--
  }

  lost (now) {
    this.tick(now)
    this.nowLost++
    this.totals.lost++
  }
}

/** The classes of this process. */
class Controller {
  #classes = new Map()

  /**
   * Creates a controller. `classes` has the settings of each class by name. `clock` returns
   * milliseconds and never goes backwards.
   */
  constructor (classes, { clock = () => performance.now() } = {}) {
    this.clock = clock
    const now = clock()
    for (const [name, settings] of Object.entries(classes)) {
      if (name === '') throw new SettingError('the name of a class is empty')
      this.#classes.set(name, new Granted(checked(name, settings), now))
    }
  }

  /**
   * Begins a request now and returns its token. `left` is the number of milliseconds that the
   * caller of the request allows. `request` is the request's name. `passedOn` has the header fields
   * that `outgoing` returns unchanged.
   */
  begin (name, left = Infinity, request = null, passedOn = {}) {
    return new Token(this.#of(name), this.clock, left, request, passedOn)
  }

  /**
   * Counts the arrival of a request that gets no token because it is refused. A call to `lost` must
   * follow.
   */
  arrived (name) {
    this.#of(name).arrived(this.clock())
  }

  /** Counts a request that was refused because of overload before it did any work. */
  lost (name) {
    this.#of(name).lost(this.clock())
  }

  /** Returns the time for which a request of this class may run at present, in milliseconds. */
  threshold (name) {
    return this.#of(name).threshold(this.clock())
  }

  /** Throws unless this class is declared. */
  knows (name) {
    this.#of(name)
  }

  /** Returns the counts and present values of every class. */
  stats () {
    const stats = {}
    for (const [name, of] of this.#classes) {
      const threshold = of.threshold(this.clock())
      const { arrived, lost, ran_too_long: terminated, deadline, client_left: clientLeft, deferred } = of.totals
      const { p, running } = of
      stats[name] = { arrived, lost, terminated, deadline, clientLeft, deferred, running, p, threshold }
    }
    return stats
  }

  #of (name) {
    const of = this.#classes.get(name)
    if (of) return of
    throw new SettingError(`class ${name} is not declared; declared: ${[...this.#classes.keys()].join(', ')}`)
  }
}

module.exports = { Controller }
