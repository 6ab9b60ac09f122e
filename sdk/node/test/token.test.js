'use strict'
// Tests of the states of a token, on a clock that the test advances.

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
    stats: () => controller.stats().search,
    loseAll () {
      for (let i = 0; i < 100; i++) {
        controller.arrived('search')
        controller.lost('search')
      }
    }
  }
}

function ends (token, reason) {
  assert.throws(() => token.checkpoint(), (error) => error instanceof Terminated && error.reason === reason)
  assert.equal(token.isTerminated, true)
  assert.equal(token.left(), 0)
  assert.equal(token.signal.aborted, true)
  assert.equal(token.signal.reason.reason, reason)
}

function goesOn (token) {
  token.checkpoint()
  assert.equal(token.isTerminated, false)
}

test('a checkpoint ends who has run for as long as it may', () => {
  const { clock, begin, stats } = search()
  const token = begin()
  const aborted = []
  token.signal.addEventListener('abort', () => aborted.push(token.signal.reason))
  clock.now = 8999
  goesOn(token)
  assert.equal(token.left(), 1)
  clock.now = 9000
  ends(token, 'ran_too_long')
  ends(token, 'ran_too_long')
  assert.deepEqual([stats().lost, stats().terminated, aborted.length], [1, 1, 1], 'once')
})

test('the threshold may fall while it runs', () => {
  const { clock, begin, loseAll } = search()
  clock.now = 5000
  const token = begin()
  loseAll()
  clock.now = 9999
  goesOn(token)
  clock.now = 10_000
  assert.equal(token.deadline, 6000)
  ends(token, 'ran_too_long')
})

test('the threshold may rise while it runs', () => {
  const { clock, begin, loseAll } = search()
  loseAll()
  clock.now = 19_500
  const token = begin()
  assert.equal(token.deadline, 20_500)
  clock.now = 20_500
  goesOn(token)
  assert.equal(token.deadline, 28_500)
})

test('its own deadline can only shorten', () => {
  const { begin } = search()
  assert.equal(begin(60_000).deadline, 9000)
  assert.equal(begin(500).deadline, 500)
  assert.equal(begin(-5).deadline, 0, 'not below zero')
})

test('deadlines of their own do not lower the threshold of others', () => {
  const { clock, begin, stats } = search()
  for (let i = 0; i < 100; i++) ends(begin(0), 'deadline')
  clock.now = 10_000
  assert.deepEqual([stats().threshold, stats().p, stats().lost, stats().deadline], [9000, 0, 0, 100])
})

test('whoever left does not count, and whoever is terminated does', () => {
  const { clock, begin, stats } = search()
  for (let i = 0; i < 100; i++) {
    const token = begin()
    token.leave()
    token.leave()
    ends(token, 'client_left')
  }
  clock.now = 10_000
  assert.deepEqual([stats().threshold, stats().clientLeft], [9000, 100])
  const tokens = Array.from({ length: 10 }, () => begin())
  clock.now = 19_000
  assert.ok(tokens.every((token) => token.look()))
  clock.now = 20_000
  assert.equal(stats().threshold, 1000)
})

test('a deadline counts from runMin on', () => {
  const { clock, begin, stats } = search()
  const tokens = [999, 1000, 5000].map((left) => begin(left))
  clock.now = 999
  ends(tokens[0], 'deadline')
  assert.deepEqual([stats().deadline, stats().lost], [1, 0])
  clock.now = 5000
  ends(tokens[1], 'deadline')
  ends(tokens[2], 'deadline')
  assert.deepEqual([stats().deadline, stats().lost, stats().terminated], [3, 2, 0])
  clock.now = 10_000
  assert.deepEqual([stats().p, stats().threshold], [1, 1000], 'of two that arrived')
})

test('who comes and goes within an interval did not arrive in it', () => {
  const { clock, controller, begin, stats } = search()
  for (let i = 0; i < 90; i++) {
    begin().leave()
    ends(begin(0), 'deadline')
  }
  const settled = begin()
  settled.settle()
  settled.leave()
  for (let i = 0; i < 10; i++) controller.arrived('search')
  controller.lost('search')
  assert.deepEqual([stats().arrived, stats().lost], [191, 1], 'all who came')
  clock.now = 10_000
  assert.equal(stats().p, 0.1)
})

test('who came in an earlier interval arrived in it', () => {
  const { clock, controller, begin, stats } = search()
  const early = begin()
  controller.arrived('search')
  controller.lost('search')
  clock.now = 10_000
  // Its departure is the first event of a new interval.
  early.leave()
  assert.equal(stats().p, 0.5)
  for (let i = 0; i < 10; i++) controller.arrived('search')
  const late = begin()
  controller.lost('search')
  clock.now = 10_001
  late.leave()
  clock.now = 20_000
  assert.equal(stats().p, 0.1)
})

test('who leaves in the last tenth of his deadline has come to it', () => {
  const cases = [
    [4000, 3599, 'client_left', 0], [4000, 3600, 'deadline', 1], [4000, 4500, 'deadline', 1], [500, 460, 'deadline', 0],
    [undefined, 8900, 'client_left', 0]
  ]
  for (const [left, after, reason, lost] of cases) {
    const { clock, begin, stats } = search()
    const token = begin(left)
    clock.now += after
    token.leave()
    ends(token, reason)
    assert.equal(stats().lost, lost, `${left} ${after}`)
  }
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

test('after the first byte only a client who leaves ends it', () => {
  const { clock, begin } = search()
  const token = begin(500)
  token.settle()
  clock.now = 100_000
  goesOn(token)
  assert.equal(token.deadline, Infinity)
  token.leave()
  ends(token, 'client_left')
})

test('who cancels termination is not terminated by anything', () => {
  const { clock, begin, stats } = search()
  const [token, late] = [begin(500), begin()]
  token.cancelTermination()
  token.cancelTermination()
  clock.now = 100_000
  token.leave()
  goesOn(token)
  assert.throws(() => late.cancelTermination(), Terminated)
  assert.deepEqual([stats().deferred, stats().clientLeft], [1, 0])
})

test('whoever has ended is not terminated, and ends once', () => {
  const { clock, begin, stats } = search()
  const [token, left] = [begin(), begin()]
  left.leave()
  for (const each of [token, left, token, left]) each.end()
  clock.now = 100_000
  token.leave()
  goesOn(token)
  ends(left, 'client_left')
  assert.deepEqual([stats().running, stats().clientLeft], [0, 1])
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
