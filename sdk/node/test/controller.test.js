'use strict'
// Tests of the thresholds and of the settings. conformance.test.js tests the rules of the
// controller.

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { test } = require('node:test')
const { Controller, SettingError } = require('..')
const { checked, granted } = require('../lib/classes')
const { GOLDEN } = require('../testing/conformance')

const BOUNDS = { runMin: 1000, runMax: 9000 }

function search (settings = {}) {
  const clock = () => clock.now
  clock.now = 1e6
  const controller = new Controller({ search: { ...BOUNDS, ...settings }, other: BOUNDS }, { clock })
  const load = (arrived, lost) => {
    for (let i = 0; i < arrived; i++) controller.arrived('search')
    for (let i = 0; i < lost; i++) controller.lost('search')
  }
  return { clock, controller, load, threshold: () => controller.threshold('search') }
}

test('every golden threshold is the engine\'s', () => {
  const text = readFileSync(GOLDEN, 'utf8')
  const rows = text.trim().split('\n').slice(1).map((line) => line.split(',').map(Number))
  assert.equal(rows.length, 105)
  for (const [runMin, runMax, alpha, low, high, arrived, lost, nanoseconds] of rows) {
    const { clock, load, threshold } = search({ runMin, runMax, alpha, low, high })
    load(arrived, lost)
    clock.now += 10_000
    assert.ok(Math.abs(threshold() - nanoseconds / 1e6) < 1e-3, `${[runMin, runMax, arrived, lost]}: ${threshold()}`)
  }
})

test('the threshold never rises with the loss', () => {
  const settings = checked('search', BOUNDS)
  let last = Infinity
  for (let p = 0; p <= 1; p += 0.001) {
    const threshold = granted(settings, p)
    assert.ok(threshold <= last && threshold >= 1000 && threshold <= 9000)
    last = threshold
  }
})

test('what makes no sense is refused, with the field and both values', () => {
  const refused = (settings, ...words) => {
    assert.throws(() => search(settings), (error) => {
      assert.ok(error instanceof SettingError)
      for (const word of words) assert.ok(error.message.includes(word), `${error.message}: ${word}`)
      return true
    })
  }
  refused({ runMin: 8000, runMax: 2000 }, 'runMin 8000', 'runMax 2000')
  refused({ low: 0.15 }, 'low 0.15', 'high 0.15')
  refused({ runMin: -1 }, 'runMin is -1', 'from 1')
  refused({ runMax: NaN }, 'runMax is NaN', '3600000')
  refused({ runMax: '30s' }, 'runMax is 30s')
  refused({ runMin: undefined }, 'runMin')
  refused({ alpha: NaN }, 'alpha is NaN', '100')
  refused({ alpha: -4 }, 'alpha is -4')
  refused({ high: 1.5 }, 'high is 1.5')
  refused({ interval: 0 }, 'interval is 0', '100')
  refused({ retryAfter: Infinity }, 'retryAfter is Infinity')
  refused({ runmin: 1 }, 'runmin', 'runMin')
  refused({ toString: 1 }, 'toString is not a setting', 'runMin')
})

test('a class that is not declared is an error', () => {
  const { controller } = search()
  for (const ask of ['begin', 'arrived', 'lost', 'threshold']) {
    assert.throws(() => controller[ask]('page'), /class page is not declared; declared: search, other/)
  }
})
