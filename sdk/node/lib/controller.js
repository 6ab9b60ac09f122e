'use strict'
// How long a request may run, by class: the controller of seed 2.
//
// Source: seed 2, SERT §3.2, as in crates/engine/src/terminate/loss.rs; lab/golden/termination.csv is what both
// must say. Of the requests of a class that came in an interval, p were lost: refused, terminated by the threshold,
// or ended by a deadline when they had run for runMin. The threshold of the next interval follows from p. Whoever
// left, or ran out of a deadline before, says nothing of how much there is to do: if that was in the interval in
// which it came, it did not arrive.
//
// One thread of JavaScript, so no lock. A worker thread has a controller of its own.

const { SettingError, checked, granted } = require('./classes')
const { Token } = require('./token')

/** One class: its counts and its threshold. Not for users. */
class Granted {
  constructor (settings, now) {
    this.settings = settings
    this.totals = { arrived: 0, lost: 0, ran_too_long: 0, deadline: 0, client_left: 0, deferred: 0 }
    this.running = 0
    this.p = 0
    /** When this interval began. */
    this.since = now
    this.nowArrived = this.nowLost = 0
  }

  /** The end of this interval: till then the threshold stays. */
  get until () {
    return this.since + this.settings.interval
  }

  tick (now) {
    const passed = Math.floor((now - this.since) / this.settings.interval)
    if (passed < 1) return
    this.since += this.settings.interval * passed
    // In an interval that nobody came in, nobody was lost; those who were terminated had come before.
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

  /** One that came in the interval that began at `came` is gone and was not lost. */
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

  /** `classes`: by name, their settings. `clock`: milliseconds that never go back. */
  constructor (classes, { clock = () => performance.now() } = {}) {
    this.clock = clock
    const now = clock()
    for (const [name, settings] of Object.entries(classes)) {
      if (name === '') throw new SettingError('the name of a class is empty')
      this.#classes.set(name, new Granted(checked(name, settings), now))
    }
  }

  /**
   * The token of a request that begins now, with `left` milliseconds if it brought a deadline along. `request` is the
   * name that it came with, `passedOn` what `outgoing` gives as it came.
   */
  begin (name, left = Infinity, request = null, passedOn = {}) {
    return new Token(this.#of(name), this.clock, left, request, passedOn)
  }

  /** A request came that gets no token, because it is refused: `lost` follows. */
  arrived (name) {
    this.#of(name).arrived(this.clock())
  }

  /** A request was refused before it did anything, as there was too much to do. */
  lost (name) {
    this.#of(name).lost(this.clock())
  }

  /** How long a request of this class may run now, in milliseconds. */
  threshold (name) {
    return this.#of(name).threshold(this.clock())
  }

  /** Throws unless this class is declared. */
  knows (name) {
    this.#of(name)
  }

  /** Every class in numbers: counts since the start, and what holds now. */
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
