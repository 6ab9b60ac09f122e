'use strict'
// Runs the steps of the vectors of sdk/conformance: a controller, its clock and its requests.

const assert = require('node:assert/strict')
const { Controller, Terminated } = require('..')
const { flat, microClock } = require('./conformance')

/** The names of fields of `stats()` that differ in the vectors. */
const FIELDS = { client_left: 'clientLeft' }
const BOUNDS = { runMin: 1000, runMax: 9000 }

class Steps {
  constructor () {
    this.clock = microClock()
    this.controller = new Controller({ search: BOUNDS, other: BOUNDS }, { clock: this.clock })
    this.tokens = {}
  }

  async run (steps) {
    for (const [name, ...args] of flat(steps)) await this[name](...args)
  }

  go (milliseconds) { this.clock.go(milliseconds) }
  arrived (count) { for (let i = 0; i < count; i++) this.controller.arrived('search') }
  lost (count) { for (let i = 0; i < count; i++) this.controller.lost('search') }

  begin (name, left = null, count = 1) {
    this.tokens[name] = Array.from({ length: count }, () => this.controller.begin('search', left ?? Infinity, name))
  }

  settle (name) { this.tokens[name].forEach((token) => token.settle()) }
  leave (name) { this.tokens[name].forEach((token) => token.leave()) }
  end (name) { this.tokens[name].forEach((token) => token.end()) }

  checkpoint (name, reason) {
    for (const token of this.tokens[name]) passes(token, () => token.checkpoint(), reason)
  }

  cancel_termination (name, reason) {
    for (const token of this.tokens[name]) passes(token, () => token.cancelTermination(), reason)
  }

  is_terminated (name, expected) {
    for (const token of this.tokens[name]) assert.equal(token.isTerminated, expected)
  }

  reason (name, expected) {
    for (const token of this.tokens[name]) assert.equal(token.reason, expected)
  }

  left (name, expected) {
    for (const token of this.tokens[name]) isAbout(token.left(), expected)
  }

  due (name, expected) {
    for (const token of this.tokens[name]) isAbout(token.deadline, expected)
  }

  threshold (name, expected) { isAbout(this.controller.threshold(name), expected) }

  stats (expected) {
    const stats = this.controller.stats().search
    for (const [name, value] of Object.entries(expected)) {
      assert.ok(Math.abs(stats[FIELDS[name] ?? name] - value) < 1e-9, `${name} is not ${value}: ${JSON.stringify(stats)}`)
    }
  }
}

/**
 * Checks that a call passes if `reason` is null, or else that it throws the error of a request that
 * is over for this reason.
 */
function passes (token, call, reason) {
  if (reason === null) {
    call()
    assert.equal(token.isTerminated, false)
    return
  }
  assert.throws(call, (error) => error instanceof Terminated && error.reason === reason)
  assert.deepEqual([token.isTerminated, token.reason, token.left()], [true, reason, 0])
  assert.deepEqual([token.signal.aborted, token.signal.reason.reason], [true, reason])
}

/**
 * Checks that two times in milliseconds differ by less than a ten-thousandth; null stands for the
 * absence of a time.
 */
function isAbout (time, expected) {
  if (expected === null) assert.equal(time, Infinity)
  else assert.ok(Math.abs(time - expected) < 1e-4, `${time} is not ${expected}`)
}

module.exports = { Steps, isAbout }
