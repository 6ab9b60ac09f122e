'use strict'
// Tests of leases and of the conversation with the stop daemon, with a fake daemon. The lines, and
// what follows from its answers: conformance.test.js.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { readdirSync } = require('node:fs')
const http = require('node:http')
const { test } = require('node:test')
const { Query, Terminated, outgoing, terminable, unleased } = require('..')
const { daemon } = require('../testing/daemon')
const { cancelled, stage } = require('../testing/stop-client')
const { listen, until, warnings } = require('../testing/server')

const LEASE = 'LEASE r1 shop 4711'
const RELEASE = 'RELEASE r1 shop 4711'

test('queries outside of a named request are one warning', async (t) => {
  const { controller, run, stopClient } = await stage(t)
  const said = warnings(t)
  const query = () => new Query(stopClient, 'shop', () => 4711, () => {}).run(async () => {})
  await unleased(query)
  assert.equal(stopClient.stats().unnamed, 0, 'it is meant to be outside')
  await query()
  await run(null, controller.begin('search'))
  assert.equal(stopClient.stats().unnamed, 2)
  await until(() => said.length > 0)
  assert.equal(said.filter((text) => text.includes('outside of a named request')).length, 1)
})

/** Resolves when all warnings so far have been emitted, which happens in a later tick. */
const emitted = () => new Promise(setImmediate)

test('queries without a daemon are one warning', async (t) => {
  const { daemon, run, stopClient } = await stage(t)
  const said = warnings(t)
  await daemon.die()
  for (let turn = 0; turn < 2; turn++) await run()
  assert.equal(stopClient.stats().unreachable, 2)
  await emitted()
  assert.deepEqual(said, [`BywashWarning: no stop daemon answers at ${daemon.path}: queries run, and nothing cancels them`])
})

const FORBIDDEN = 'ERR forbidden add this user to stopd.leases'

test('refused leases are one warning with the daemon\'s text', async (t) => {
  const { answers, daemon, run, stopClient } = await stage(t)
  const said = warnings(t)
  answers({ LEASE: FORBIDDEN })
  for (let turn = 0; turn < 2; turn++) await run()
  assert.equal(stopClient.stats().refused, 2)
  await emitted()
  assert.deepEqual(said, [`BywashWarning: the stop daemon at ${daemon.path} refused a lease (later ones are only counted): ${FORBIDDEN}`])
})

test('refused stops are one warning with the daemon\'s text', async (t) => {
  const { answers, daemon, stopClient } = await stage(t)
  const said = warnings(t)
  answers({ STOP: FORBIDDEN })
  for (let turn = 0; turn < 2; turn++) stopClient.stop('r1', 'client_left')
  await until(() => stopClient.stats().refused === 2)
  await emitted()
  assert.deepEqual(said, [`BywashWarning: the stop daemon at ${daemon.path} refused a stop (later ones are only counted): ${FORBIDDEN}`])
})

test('the daemon\'s text in a warning is printable and bounded', async (t) => {
  const { answers, run } = await stage(t)
  const said = warnings(t)
  answers({ LEASE: `ERR \x1b[2J\u00e9 ${'x'.repeat(1100)}` })
  await run()
  await emitted()
  // The two bytes of the letter are two characters.
  const start = 'ERR ?[2J?? '
  assert.ok(said[0].endsWith(`: ${start}${'x'.repeat(1024 - start.length)}`), said[0])
})

test('a stop that comes too late is no warning', async (t) => {
  const { answers, run, stopClient } = await stage(t)
  const said = warnings(t)
  stopClient.refused('lease', 'STOPPED client_left')
  answers({ LEASE: FORBIDDEN })
  await run()
  await emitted()
  assert.equal(stopClient.stats().refused, 2)
  assert.deepEqual(said.map((text) => text.endsWith(FORBIDDEN)), [true])
})

test('the error of a cancelled query is the cause of that of its request, and another error stays', async (t) => {
  const { begin, run, token } = await stage(t)
  await assert.rejects(run(() => { token.leave(); throw cancelled() }), (error) =>
    error instanceof Terminated && error.cause.code === '57014')
  const left = begin()
  await assert.rejects(run(() => { left.leave(); throw new RangeError('no') }, left), RangeError)
})

test('if a cancellation takes long, the connection is closed and the reason asked', async (t) => {
  const { closed, daemon, run, stopClient, token } = await stage(t)
  await assert.rejects(run(() => {
    // Until the end of a cancellation the daemon refuses each line about the connection.
    daemon.answer = (words) => {
      if (!words.includes('self')) return 'ERR taken close it'
      return words.startsWith('LEASE') ? 'STOPPED deadline' : 'OK'
    }
    throw cancelled()
  }), (error) => error instanceof Terminated && error.reason === 'deadline')
  assert.deepEqual(daemon.lines(), [LEASE, RELEASE, 'LEASE r1 self 1'])
  assert.deepEqual([closed, stopClient.stats().spoiled, token.reason], [[4711], 1, 'deadline'])
})

test('if nobody has stopped the request of a closed connection, its error stays', async (t) => {
  const { closed, daemon, run, stopClient, token } = await stage(t)
  daemon.answer = (words) => {
    // The stop comes after the answer to the question.
    if (words === 'LEASE r1 self 1') setImmediate(() => daemon.say('0 STOPPED r1 client_left 1\n'))
    return words === RELEASE ? 'ERR taken close it' : 'OK'
  }
  await assert.rejects(run(() => { throw cancelled() }), { code: '57014' })
  assert.deepEqual(daemon.lines(), [LEASE, RELEASE, 'LEASE r1 self 1', 'RELEASE r1 self 1'])
  await run(null, undefined, 4712)
  assert.deepEqual([closed, stopClient.stats().spoiled, token.reason], [[4711], 1, null])
  assert.equal(daemon.clients.length, 1, 'the conversation goes on')
})

test('a stop of own work for a reason that is not known ends the conversation', async (t) => {
  const { daemon, run, stopClient } = await stage(t)
  await run()
  daemon.say('0 STOPPED r1 boredom 1\n')
  await until(() => stopClient.conversation() === null)
})

test('without a daemon everything works, and it is looked for again after 200 ms', async (t) => {
  const { closed, daemon: was, run, stopClient, token, watch } = await stage(t)
  await was.die()
  for (let turn = 0; turn < 3; turn++) assert.equal(await run(() => 7), 7)
  await assert.rejects(run(() => { throw cancelled() }), { code: '57014' })
  assert.deepEqual([closed, stopClient.stats().unreachable, token.reason], [[], 4, null])
  const again = await daemon(t, was.path)
  watch.now = 199
  await run()
  assert.deepEqual(again.lines(), [])
  watch.now = 200
  await run()
  assert.deepEqual(again.lines(), [LEASE, RELEASE])
})

test('a daemon that dies within a lease closes the connection, although there is another by then', async (t) => {
  const { closed, daemon: was, run, stopClient, watch } = await stage(t)
  await run(async () => {
    await was.die()
    await until(() => stopClient.conversation() === null)
    const again = await daemon(t, was.path)
    watch.now += 1000
    await run(null, undefined, 4712)
    assert.deepEqual(again.lines(), ['LEASE r1 shop 4712', 'RELEASE r1 shop 4712'])
  })
  assert.deepEqual([closed, stopClient.stats().spoiled], [[4711], 1])
})

test('what is not answered ends the conversation and closes the connection', async (t) => {
  const { answers, closed, daemon, run, watch } = await stage(t, 100)
  for (const verb of ['LEASE', 'RELEASE']) {
    answers({ [verb]: null })
    assert.equal(await run(() => 7), 7)
    assert.deepEqual(closed.splice(0), [4711], verb)
    daemon.lines()
    await run()
    assert.deepEqual(daemon.lines(), [], 'nobody waits again at once')
    watch.now += 1000
  }
})

test('what is no answer ends the conversation, also after one and before its end', async (t) => {
  const { answers, closed, run, stopClient, watch } = await stage(t)
  for (const answer of ['OK\nx', 'O'.repeat(2000)]) {
    watch.now += 1000
    answers({ LEASE: answer })
    await run(() => until(() => stopClient.conversation() === null))
    assert.deepEqual(closed.splice(0), [4711], answer)
  }
})

test('an answer that came while this thread was busy is one', async (t) => {
  const { closed, daemon, run, stopClient } = await stage(t, 100)
  await run()
  daemon.answer = () => {
    setImmediate(() => { for (const end = Date.now() + 150; Date.now() < end;); })
    return 'OK'
  }
  await run()
  assert.deepEqual([closed, stopClient.stats().leased], [[], 2])
})

test('answers find who asked in whatever order and pieces they come', async (t) => {
  const { closed, daemon, run } = await stage(t)
  await run()
  daemon.lines()
  daemon.answer = () => null
  const running = Promise.allSettled([4711, 4712].map((number) => run(() => number, undefined, number)))
  assert.equal((await daemon.next()).slice(-4) + (await daemon.next()).slice(-4), '47114712')
  for (const piece of ['4 O', 'K\n3 ST', 'OPPED client_left\n']) daemon.say(piece)
  assert.equal(await daemon.next(), 'RELEASE r1 shop 4712')
  daemon.say('1 OK\n5 OK\n')
  const [stopped, other] = await running
  assert.ok(stopped.reason instanceof Terminated && other.value === 4712 && closed.length === 0)
})

test('a thousand at once and a hundred conversations leave no socket behind', async (t) => {
  const { closed, run, stopClient, watch } = await stage(t)
  await Promise.all(Array.from({ length: 1000 }, (_, i) => run(null, undefined, i + 1)))
  assert.deepEqual([closed, stopClient.stats().leased], [[], 1000])
  const files = () => readdirSync('/proc/self/fd').length
  const before = files()
  for (let turn = 0; turn < 100; turn++) {
    stopClient.close()
    watch.now += 1000
    await run()
  }
  await until(() => files() <= before)
})

test('outside of a request nothing is passed on', () => {
  assert.deepEqual(outgoing(), {})
})

test('a client who leaves stops what his request has leased', async (t) => {
  const { controller, daemon, stopClient } = await stage(t)
  const { port } = await listen(t, terminable(controller, 'search', async (req) => {
    await new Query(stopClient, 'shop', () => 4711, () => {}).run(() => once(req.bywash.signal, 'abort'))
  }))
  const request = http.get({ port, host: '127.0.0.1', headers: { 'bywash-request': 'r2' } }).on('error', () => {})
  assert.match(await daemon.next(), /^LEASE r2 shop 4711 not-after=\d+$/)
  request.destroy()
  assert.equal(await daemon.next(), 'STOP r2 client_left scope=own')
  assert.equal(await daemon.next(), 'RELEASE r2 shop 4711')
})
