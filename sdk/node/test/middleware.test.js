'use strict'
// Tests of the middleware on Node's server over loopback.
//
// Tests and handlers advance the controller's clock. Timers use real time, but only look at that
// clock.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const http = require('node:http')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { Controller, answerTerminated, checkpoint, current, middleware, terminable } = require('..')
const { ENDLESS, listen, row, until } = require('../testing/server')

const SHORT = { runMin: 10, runMax: 20 }
const OWN = { 'Content-Encoding': 'gzip', 'Content-Disposition': 'inline', Location: '/a', ETag: '"a"', 'X-Own': 'a' }

const clock = () => clock.now
clock.now = 0

const ended = []

/** Advances the clock, and waits until every armed timer has fired. */
async function outlast () {
  clock.now += ENDLESS
  await sleep(SHORT.runMax * 3)
}

const handlers = {
  quick: (req, res) => res.end('done'),
  later: (req, res) => { setImmediate(() => res.end('done')) },
  wait: async (req, res) => {
    for (const [name, value] of Object.entries(OWN)) res.setHeader(name, value)
    res.appendHeader('Set-Cookie', 'own=1')
    await sleep(ENDLESS, null, { signal: req.bywash.signal }).finally(() => ended.push(req.bywash.reason))
  },
  compute: async (req, res) => {
    try {
      for (;;) {
        checkpoint()
        await sleep(1)
      }
    } finally {
      ended.push(current().reason)
    }
  },
  own: async (req, res) => {
    try {
      await sleep(ENDLESS, null, { signal: req.bywash.signal })
    } catch {
      res.writeHead(503).end('own words')
    }
  },
  unasked: async (req, res) => {
    await outlast()
    assert.equal(req.bywash.isTerminated, true)
    res.end('late')
  },
  stream: async (req, res) => {
    const { signal } = req.bywash
    res.write('a')
    await outlast()
    checkpoint()
    res.end(String(signal.aborted))
  },
  deferred: async (req, res) => {
    const { signal } = req.bywash
    req.bywash.cancelTermination()
    await outlast()
    checkpoint()
    res.end(String(signal.aborted))
  },
  deferred_and_left: async (req, res) => {
    req.bywash.cancelTermination()
    await once(res, 'close')
    await outlast()
    ended.push(req.bywash.reason)
    checkpoint()
  },
  untouched: async (req, res) => {
    await outlast()
    checkpoint()
    res.end(String(req.bywash))
  }
}

const handle = (req, res) => handlers[req.url.slice(1)](req, res)
const classOf = (req) => req.url === '/untouched' ? null : 'search'

/** The function that turns a handler of ours into one of a server, by style. */
const STYLES = {
  plain: (controller) => terminable(controller, classOf, handle),
  connect: (controller) =>
    row(middleware(controller, classOf), (req, res, next) => handle(req, res), answerTerminated)
}

async function serve (t, settings, style = 'plain') {
  ended.length = 0
  const controller = new Controller({ search: { interval: 3_600_000, retryAfter: ENDLESS, ...settings } }, { clock })
  const app = STYLES[style](controller)
  const { get, port } = await listen(t, (req, res) => {
    res.setHeader('X-Outer', 'kept')
    res.setHeader('Set-Cookie', ['outer=1'])
    return app(req, res)
  })
  const stats = () => controller.stats().search
  /** Resolves to the answer to a request whose handler has run for `after` milliseconds. */
  const getOverdue = async (path, headers, after = SHORT.runMax) => {
    const answer = get(path, headers)
    await until(() => stats().running === 1)
    clock.now += after
    return answer
  }
  return { controller, get, getOverdue, port, stats }
}

for (const style of Object.keys(STYLES)) {
  test(`${style}: a long handler gets 504 and a short one 200`, async (t) => {
    const { get, getOverdue, stats } = await serve(t, SHORT, style)
    for (const path of ['/wait', '/compute']) {
      const { status, head, body } = await getOverdue(path)
      assert.deepEqual([status, head.get('retry-after'), head.get('cache-control')], [504, '600', 'no-store'], path)
      assert.equal(head.get('proxy-status'), null)
      assert.match(body, /\(ran_too_long\)/)
      await until(() => stats().running === 0)
    }
    assert.equal((await get('/quick')).status, 200)
    assert.equal((await get('/later')).status, 200)
    assert.deepEqual(ended, ['ran_too_long', 'ran_too_long'])
    assert.deepEqual([stats().lost, stats().terminated, stats().arrived], [2, 2, 4])
  })

  test(`${style}: the answer has no field of the handler, and those from before it`, async (t) => {
    const { getOverdue } = await serve(t, SHORT, style)
    const { head } = await getOverdue('/wait')
    for (const name of Object.keys(OWN)) assert.equal(head.get(name), null, name)
    assert.deepEqual([head.get('x-outer'), head.getSetCookie()], ['kept', ['outer=1']])
  })

  test(`${style}: the handler's own words come first`, async (t) => {
    const { getOverdue } = await serve(t, SHORT, style)
    const { status, body } = await getOverdue('/own')
    assert.deepEqual([status, body], [503, 'own words'])
  })

  test(`${style}: what has begun, is deferred or has no class is not terminated`, async (t) => {
    const { get, stats } = await serve(t, SHORT, style)
    for (const [path, expected] of [['/stream', 'afalse'], ['/deferred', 'false'], ['/untouched', 'undefined']]) {
      const { status, body } = await get(path)
      assert.deepEqual([status, body], [200, expected], path)
    }
    assert.deepEqual([stats().arrived, stats().lost, stats().deferred, stats().clientLeft], [2, 0, 1, 0])
  })

  test(`${style}: who is never told and done too late was served`, async (t) => {
    const { get, stats } = await serve(t, SHORT, style)
    const { status, body } = await get('/unasked')
    assert.deepEqual([status, body], [200, 'late'])
    assert.deepEqual([stats().arrived, stats().lost, stats().terminated], [1, 0, 0])
  })

  test(`${style}: tiny deadlines end their own requests and lower no threshold, long ones do`, async (t) => {
    const { get, getOverdue, stats } = await serve(t, { runMin: 50, runMax: ENDLESS }, style)
    for (const milliseconds of [20, 49]) {
      const fields = { 'bywash-deadline': String(milliseconds) }
      const { status, head, body } = await getOverdue('/wait', fields, milliseconds)
      assert.deepEqual([status, head.get('retry-after'), head.get('cache-control')], [504, null, 'no-store'])
      assert.match(body, /\(deadline\)/)
      await until(() => stats().running === 0)
    }
    // A request with no time left does not begin.
    assert.equal((await get('/quick', { 'bywash-deadline': '0' })).status, 504)
    assert.deepEqual([stats().deadline, stats().lost], [3, 0])
    await getOverdue('/wait', { 'bywash-deadline': '50' }, 50)
    assert.deepEqual([stats().deadline, stats().lost], [4, 1])
  })

  test(`${style}: a client who leaves frees the handler`, async (t) => {
    const { port, stats } = await serve(t, SHORT, style)
    const leave = async (path, headers, after) => {
      ended.length = 0
      const request = http.get({ port, path, headers, host: '127.0.0.1' })
      request.on('error', () => {})
      await until(() => stats().running === 1)
      clock.now += after
      request.destroy()
      await until(() => ended.length === 1 && stats().running === 0)
      return ended[0]
    }
    assert.equal(await leave('/wait', {}, 0), 'client_left')
    assert.equal(await leave('/compute', {}, 0), 'client_left')
    assert.deepEqual([stats().clientLeft, stats().lost], [2, 0])
    assert.equal(await leave('/wait', { 'bywash-deadline': '20' }, 19), 'deadline')
    assert.deepEqual([stats().clientLeft, stats().deadline, stats().lost], [2, 1, 1])
  })

  test(`${style}: a client who leaves ends nobody who is deferred`, async (t) => {
    const { port, stats } = await serve(t, SHORT, style)
    const request = http.get({ port, path: '/deferred_and_left', host: '127.0.0.1' }).on('error', () => {})
    await until(() => stats().deferred === 1)
    request.destroy()
    await until(() => ended.length === 1)
    assert.deepEqual(ended, [null])
    assert.deepEqual([stats().running, stats().clientLeft, stats().lost], [0, 0, 0])
  })

  test(`${style}: of two hundred at once nothing stays behind`, async (t) => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const { get, stats } = await serve(t, { runMin: ENDLESS, runMax: ENDLESS }, style)
    const before = timers()
    const all = (paths, headers) => Promise.all(Array.from({ length: 100 }, (_, i) => get(paths[i % 2], headers)))
    const long = all(['/wait', '/compute'], { 'bywash-deadline': '200' })
    await until(() => stats().running === 100)
    for (const { status } of await all(['/quick', '/later'])) assert.equal(status, 200)
    clock.now += 200
    for (const { status } of await long) assert.equal(status, 504)
    await until(() => stats().running === 0)
    // Timers of our own `fetch` end as well. No timer of a handler may stay for ten minutes.
    await until(() => timers() <= before)
    assert.deepEqual([stats().deadline, stats().lost], [100, 0])
  })
}

test('a falling threshold reaches who runs', async (t) => {
  const { controller, getOverdue } = await serve(t, { runMin: 10, runMax: ENDLESS, interval: 100 })
  const answer = getOverdue('/wait', {}, 0)
  await until(() => controller.stats().search.running === 1)
  controller.lost('search')
  clock.now += 100
  assert.equal((await answer).status, 504)
})

test('who runs through several intervals is terminated all the same', async (t) => {
  const { get, stats } = await serve(t, { runMin: 10, runMax: 350, interval: 100 })
  let answer
  const asking = get('/wait').then((got) => { answer = got })
  await until(() => stats().running === 1)
  for (let i = 0; i < 5; i++) {
    assert.equal(answer, undefined)
    clock.now += 70
    await sleep(1)
  }
  await asking
  assert.equal(answer.status, 504)
})

test('a handler is told no sooner than it is overdue: its timer asks again until it is', async (t) => {
  const { get, stats } = await serve(t, SHORT)
  const asking = get('/wait')
  await until(() => stats().running === 1)
  clock.now += SHORT.runMax - 1
  await sleep(SHORT.runMax * 3)
  assert.equal(stats().terminated, 0)
  clock.now += 1
  assert.equal((await asking).status, 504)
})

test('an error is the application\'s as before', async (t) => {
  const controller = new Controller({ search: SHORT }, { clock })
  const handler = terminable(controller, 'search', () => { throw new RangeError('no') })
  const { get } = await listen(t, (req, res) => handler(req, res).catch((error) => res.end(error.name)))
  assert.equal((await get('/')).body, 'RangeError')
})
