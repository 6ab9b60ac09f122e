'use strict'
// Tests of signals and timers of a token, on a clock that the test advances. conformance.test.js
// tests the states.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { Controller, Terminated, checkpoint, current } = require('..')

function search () {
  const clock = () => clock.now
  clock.now = 0
  const controller = new Controller({ search: { runMin: 1000, runMax: 9000 } }, { clock })
  return {
    clock,
    controller,
    begin: (left) => controller.begin('search', left),
    stats: () => controller.stats().search
  }
}

test('a signal aborts once, with the error of its request', () => {
  const { clock, begin } = search()
  const token = begin()
  const aborted = []
  token.signal.addEventListener('abort', () => aborted.push(token.signal.reason))
  clock.now = 9000
  for (let turn = 0; turn < 2; turn++) assert.throws(() => token.checkpoint(), Terminated)
  assert.deepEqual(aborted.map((error) => error.reason), ['ran_too_long'])
})

test('a deadline is not before the begin', () => {
  assert.equal(search().begin(-5).deadline, 0)
})

test('to ask whether it is over tells nobody', () => {
  const { clock, begin, stats } = search()
  const [token, other] = [begin(), begin()]
  clock.now = 9000
  assert.equal(token.isTerminated, true)
  assert.deepEqual([stats().terminated, stats().lost, token.reason], [0, 0, null])
  assert.equal(token.look(), true, 'who aborts it is still to do so')
  assert.deepEqual([stats().terminated, token.reason], [1, 'ran_too_long'])
  assert.equal(other.signal.aborted, true, 'who takes the signal is told at once')
  assert.equal(stats().terminated, 2)
})

test('only who has taken the signal has a timer', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const { begin } = search()
  const before = timers()
  const token = begin()
  token.checkpoint()
  assert.equal(timers(), before)
  assert.equal(token.signal, token.signal)
  assert.equal(timers(), before + 1)
  token.end()
  assert.equal(timers(), before)
})

test('code that works for no request passes its checkpoints', () => {
  assert.equal(current(), undefined)
  checkpoint()
})

test('a checkpoint is never late, whatever the loads', () => {
  // Compares with a reference that asks the controller at each step. The generator is our own, for
  // the same loads each time.
  let seed = 7
  const chance = (below) => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31
    return Math.floor(seed / 65536) % below
  }
  const { clock, controller, begin, stats } = search()
  let running = []
  for (let turn = 0; turn < 3000; turn++) {
    clock.now += [10, 300, 2000][chance(3)]
    for (let i = chance(14); i > 0; i--) controller.arrived('search')
    if (chance(10) === 0) controller.lost('search')
    running.push(begin([undefined, undefined, 3000][chance(3)]))
    running = running.filter((token) => {
      const isDue = clock.now >= token.deadline
      try {
        token.checkpoint()
        assert.equal(isDue, false, `turn ${turn}`)
        return chance(10) >= 3
      } catch (error) {
        assert.ok(error instanceof Terminated && isDue, `turn ${turn}: ${error}`)
        return false
      }
    })
  }
  assert.ok(stats().terminated > 30 && stats().deadline > 30, JSON.stringify(stats()))
})
