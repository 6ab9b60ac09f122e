'use strict'
// The middleware on Node's server over loopback.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const http = require('node:http')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { Controller, Terminated, answerTerminated, checkpoint, current, middleware, terminable } = require('..')

// Longer than anything takes on a busy machine, shorter than a handler that nobody stops.
const PATIENCE = 20_000
const ENDLESS = 600_000

const ended = []

const handlers = {
  quick: (req, res) => res.end('done'),
  later: (req, res) => { setImmediate(() => res.end('done')) },
  wait: async (req, res) => {
    res.setHeader('Content-Encoding', 'gzip')
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
  stream: async (req, res) => {
    res.write('a')
    await sleep(400, null, { signal: req.bywash.signal })
    checkpoint()
    res.end('b')
  },
  deferred: async (req, res) => {
    req.bywash.cancelTermination()
    await sleep(400, null, { signal: req.bywash.signal })
    checkpoint()
    res.end('b')
  },
  untouched: async (req, res) => {
    await sleep(400)
    checkpoint()
    res.end(String(req.bywash))
  }
}

const handle = (req, res) => handlers[req.url.slice(1)](req, res)
const classOf = (req) => req.url === '/untouched' ? null : 'search'

/** Connect in a few lines: handlers in a row, errors to those that take four arguments. */
function row (...steps) {
  return (req, res) => {
    let turn = 0
    const next = (error) => {
      const step = steps.slice(turn).findIndex((each) => (each.length === 4) === (error !== undefined))
      if (step < 0) return res.destroy(error)
      turn += step + 1
      const args = error === undefined ? [req, res, next] : [error, req, res, next]
      Promise.resolve().then(() => steps[turn - 1](...args)).catch(next)
    }
    next()
  }
}

/** By style: what makes a server's handler of ours. */
const STYLES = {
  plain: (controller, options) => terminable(controller, classOf, handle, options),
  connect: (controller, options) => row(middleware(controller, classOf, options), (req, res, next) => handle(req, res), answerTerminated)
}

async function serve (t, settings, style = 'plain', options) {
  ended.length = 0
  const controller = new Controller({ search: { interval: ENDLESS, ...settings } })
  const server = http.createServer(STYLES[style](controller, options))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.closeAllConnections(); server.close() })
  const { port } = server.address()
  const get = async (path, headers = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { connection: 'close', ...headers }, signal: AbortSignal.timeout(PATIENCE)
    })
    return { status: response.status, head: response.headers, body: await response.text() }
  }
  return { controller, get, port, stats: () => controller.stats().search }
}

async function until (holds) {
  for (let turn = 0; turn < PATIENCE / 10; turn++) {
    if (holds()) return
    await sleep(10)
  }
  assert.fail('it did not come about')
}

for (const style of Object.keys(STYLES)) {
  test(`${style}: a long handler gets 504 and a short one 200`, async (t) => {
    const { controller, get, stats } = await serve(t, { runMin: 50, runMax: 200 }, style)
    for (const path of ['/wait', '/compute']) {
      const began = controller.clock()
      const { status, head, body } = await get(path)
      assert.deepEqual([status, head.get('retry-after'), head.get('content-encoding')], [504, '600', null], path)
      assert.equal(head.get('proxy-status'), null)
      assert.match(body, /\(ran_too_long\)/)
      assert.ok(controller.clock() - began >= 200, path)
    }
    assert.equal((await get('/quick')).status, 200)
    assert.equal((await get('/later')).status, 200)
    assert.deepEqual(ended, ['ran_too_long', 'ran_too_long'])
    assert.deepEqual([stats().lost, stats().terminated, stats().arrived], [2, 2, 4])
  })

  test(`${style}: who accepts JSON gets a problem`, async (t) => {
    const { get } = await serve(t, { runMin: 1, runMax: 10 }, style)
    const { head, body } = await get('/wait', { accept: 'application/json' })
    assert.equal(head.get('content-type'), 'application/problem+json')
    const problem = JSON.parse(body)
    assert.deepEqual([problem.status, problem.reason, problem['retry-after']], [504, 'ran_too_long', 600])
  })

  test(`${style}: the handler's own words come first`, async (t) => {
    const { get } = await serve(t, { runMin: 1, runMax: 10 }, style)
    const { status, body } = await get('/own')
    assert.deepEqual([status, body], [503, 'own words'])
  })

  test(`${style}: what has begun, is deferred or has no class is not terminated`, async (t) => {
    const { get, stats } = await serve(t, { runMin: 50, runMax: 200 }, style)
    for (const [path, expected] of [['/stream', 'ab'], ['/deferred', 'b'], ['/untouched', 'undefined']]) {
      const { status, body } = await get(path)
      assert.deepEqual([status, body], [200, expected], path)
    }
    assert.deepEqual([stats().arrived, stats().lost, stats().deferred, stats().clientLeft], [2, 0, 1, 0])
  })

  test(`${style}: tiny deadlines end their own requests and lower no threshold`, async (t) => {
    const { get, stats } = await serve(t, { runMin: 50, runMax: ENDLESS }, style)
    for (const text of ['20', '1', '0']) {
      const { status, body } = await get('/wait', { 'bywash-deadline': text })
      assert.equal(status, 504)
      assert.match(body, /\(deadline\)/)
    }
    // Who comes with nothing left does not begin.
    assert.equal((await get('/quick', { 'bywash-deadline': '0' })).status, 504)
    for (const nonsense of ['-1', '1.5', '0000000000', 'x', '', '0, 0']) {
      assert.equal((await get('/quick', { 'bywash-deadline': nonsense })).status, 200)
    }
    assert.deepEqual([stats().deadline, stats().lost], [4, 0])
    const distrusting = await serve(t, { runMin: 50, runMax: ENDLESS }, style, { trustDeadline: false })
    assert.equal((await distrusting.get('/quick', { 'bywash-deadline': '0' })).status, 200)
  })

  test(`${style}: a client who leaves frees the handler`, async (t) => {
    const { port, stats } = await serve(t, { runMin: ENDLESS, runMax: ENDLESS }, style)
    for (const path of ['/wait', '/compute']) {
      ended.length = 0
      const request = http.get({ port, path, host: '127.0.0.1' })
      request.on('error', () => {})
      await until(() => stats().running === 1)
      request.destroy()
      await until(() => ended.length === 1)
      assert.deepEqual(ended, ['client_left'])
    }
    await until(() => stats().running === 0)
    assert.deepEqual([stats().clientLeft, stats().lost], [2, 0])
  })

  test(`${style}: of two hundred at once nothing stays behind`, async (t) => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const { get, stats } = await serve(t, { runMin: 150, runMax: ENDLESS }, style)
    const before = timers()
    const paths = Array.from({ length: 200 }, (_, i) => ['/quick', '/later', '/wait', '/compute'][i % 4])
    const short = { 'bywash-deadline': '200' }
    const answers = await Promise.all(paths.map((path, i) => get(path, i % 4 > 1 ? short : {})))
    assert.deepEqual(answers.map(({ status }) => status), paths.map((_, i) => i % 4 > 1 ? 504 : 200))
    await until(() => stats().running === 0)
    // Those of our own `fetch` go as well. A handler's is what must not stay for ten minutes.
    await until(() => timers() <= before)
    assert.equal(stats().deadline, 100)
  })
}

test('a falling threshold reaches who runs', async (t) => {
  const { controller, get } = await serve(t, { runMin: 50, runMax: ENDLESS, interval: 200 })
  let answer
  const asking = get('/wait').then((got) => { answer = got })
  while (!answer) {
    controller.arrived('search')
    controller.lost('search')
    await sleep(20)
  }
  await asking
  assert.equal(answer.status, 504)
})

test('who runs through several intervals is terminated all the same', async (t) => {
  const { controller, get } = await serve(t, { runMin: 50, runMax: 350, interval: 100 })
  const began = controller.clock()
  assert.equal((await get('/wait')).status, 504)
  assert.ok(controller.clock() - began >= 350)
})

test('an error is the application\'s as before', async (t) => {
  const controller = new Controller({ search: { runMin: 50, runMax: 100 } })
  const handler = terminable(controller, 'search', () => { throw new RangeError('no') })
  const server = http.createServer((req, res) => handler(req, res).catch((error) => res.end(error.name)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.closeAllConnections(); server.close() })
  const response = await fetch(`http://127.0.0.1:${server.address().port}/`)
  assert.equal(await response.text(), 'RangeError')
})

test('Express makes the answer of the error itself', () => {
  const clock = () => 0
  const token = new Controller({ search: { runMin: 50, runMax: 100 } }, { clock }).begin('search')
  token.leave()
  const error = token.terminated()
  assert.ok(error instanceof Terminated)
  assert.deepEqual([error.status, error.statusCode, error.headers], [504, 504, { 'Retry-After': '10' }])
})

test('a class that is not declared, or an option that is none, is an error at once', () => {
  const controller = new Controller({ search: { runMin: 50, runMax: 100 } })
  assert.throws(() => terminable(controller, 'page', handle), /page is not declared/)
  assert.throws(() => middleware(controller, 'search', { trust: false }), /trust/)
})
