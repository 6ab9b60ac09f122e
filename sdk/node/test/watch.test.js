'use strict'
// Tests of a request that is over while its query runs: the check, the stop, and the time of the
// release.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { Controller, Terminated } = require('..')
const { cancelled, stage } = require('../testing/stop-client')

const RELEASE = 'RELEASE r1 shop 4711'
// How long a test waits for a line before it fails.
const PATIENT = { timeout: 60_000 }
const short = (clock) => new Controller({ search: { runMin: 50, runMax: 50 } }, { clock })

test('a query that is longer than its request may run is told to the daemon, if nobody asks', PATIENT, async (t) => {
  const { clock, daemon, run } = await stage(t)
  for (const [reason, left] of [['ran_too_long', Infinity], ['deadline', 10]]) {
    await assert.rejects(run(async () => {
      assert.match(await daemon.next(), /^LEASE r1 shop 4711 not-after=/)
      clock.now += 50
      assert.equal(await daemon.next(), `STOP r1 ${reason} scope=own`)
      throw cancelled()
    }, short(clock).begin('search', left, 'r1')), (error) => error instanceof Terminated && error.reason === reason)
    assert.equal(await daemon.next(), RELEASE)
  }
})

test('the timer of a lease that was released terminates nobody, and the next lease has one again', async (t) => {
  const { clock, daemon, run } = await stage(t)
  const controller = short(clock)
  const [token, other] = [1, 2].map(() => controller.begin('search', Infinity, 'r1'))
  for (const each of [token, other]) await run(null, each)
  await sleep(80)
  daemon.lines()
  await assert.rejects(run(async () => {
    clock.now += 50
    assert.match(await daemon.next(), /^LEASE/)
    assert.equal(await daemon.next(), 'STOP r1 ran_too_long scope=own')
    throw cancelled()
  }, token), Terminated)
  await sleep(80)
  assert.equal(other.reason, null)
})

test('the release of what was abandoned comes a moment after the stop', async (t) => {
  const { begin, daemon, run } = await stage(t)
  const took = async (leave) => {
    let released
    let over
    daemon.answer = (words) => {
      if (words === RELEASE) released = performance.now()
      return 'OK'
    }
    const token = begin()
    await assert.rejects(run(async () => {
      if (leave) token.leave()
      over = performance.now()
      throw new DOMException('aborted', 'AbortError')
    }, token), { name: 'AbortError' })
    return released - over
  }
  assert.ok(await took(true) >= 95)
  const others = []
  for (let turn = 0; turn < 20; turn++) others.push(await took(false))
  assert.ok(Math.min(...others) < 95, `${others}`)
})
