'use strict'
// Tests of responses that began before the middleware, and of errors of requests that are over.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { connect } = require('node:net')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { answerTerminated, checkpoint, middleware, terminable } = require('..')
const { BOUNDS, ENDLESS, clock, listen, row, search, until, warnings } = require('../testing/server')

/** Advances the clock until a checkpoint throws. */
function overdue () {
  clock.now += BOUNDS.runMax
  checkpoint()
}

const handlers = {
  quick: (req, res) => res.end('done'),
  told: overdue,
  aborted: (req) => {
    clock.now += BOUNDS.runMax
    return sleep(ENDLESS, null, { signal: req.bywash.signal })
  },
  wrapped: async () => {
    try { overdue() } catch (cause) { throw new Error('a query failed', { cause }) }
  },
  original: async () => {
    try { overdue() } catch (original) { throw Object.assign(new Error('a query failed'), { original }) }
  },
  driver_error: async () => {
    try { overdue() } catch (driverError) { throw Object.assign(new Error('a query failed'), { driverError }) }
  },
  breaks: async () => {
    try { overdue() } catch { throw new RangeError('no') }
  },
  breaks_off: async (req, res) => {
    try { overdue() } catch {
      res.writeHead(503).write('a')
      throw new RangeError('own')
    }
  },
  reads: async (req) => {
    for await (const chunk of req) chunk.toString()
  }
}
const handle = (req, res) => handlers[req.url.slice(1)](req, res)

const STYLES = {
  plain: (controller) => terminable(controller, 'search', handle),
  connect: (controller) => row(middleware(controller, 'search'), (req, res, next) => handle(req, res), answerTerminated)
}

for (const [style, app] of Object.entries(STYLES)) {
  test(`${style}: only an error that says more than that its request is over is a warning`, async (t) => {
    const { controller } = search()
    const said = warnings(t)
    const { get } = await listen(t, app(controller))
    const paths = ['/told', '/aborted', '/wrapped', '/original', '/driver_error', '/breaks']
    for (const path of paths) assert.equal((await get(path)).status, 504, path)
    await until(() => said.length > 0)
    assert.equal(said.length, 1, said.join())
    assert.match(said[0], /^BywashWarning: .*RangeError: no/)
  })

  test(`${style}: a client who leaves within his body is no warning`, async (t) => {
    const { controller, stats } = search()
    const said = warnings(t)
    const { get, port } = await listen(t, app(controller))
    const stream = connect(port, '127.0.0.1')
    stream.write('POST /reads HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\na')
    await until(() => stats().running === 1)
    stream.destroy()
    await until(() => stats().running === 0)
    // The next one warns, so an earlier warning would have come before it.
    await get('/breaks')
    await until(() => said.length > 0)
    assert.match(said[0], /RangeError: no/)
    assert.equal(stats().clientLeft, 1)
  })

  test(`${style}: own words that an error ends break off`, async (t) => {
    const { controller, stats } = search()
    const said = warnings(t)
    const { port } = await listen(t, app(controller))
    const stream = connect(port, '127.0.0.1').on('error', () => {}).resume()
    stream.write('GET /breaks_off HTTP/1.1\r\nhost: a\r\n\r\n')
    await until(() => stats().terminated === 1 && stats().running === 0)
    await until(() => stream.closed)
    // In Connect's style the error goes to the next error handler.
    if (style === 'plain') assert.match(said.join(), /RangeError: own/)
  })

  test(`${style}: a response that has begun before the middleware is settled`, async (t) => {
    const { controller, stats } = search()
    const { get } = await listen(t, (req, res) => {
      res.writeHead(200).write('a')
      app(controller)(req, res)
    })
    assert.equal((await get('/quick', { 'bywash-deadline': '0' })).body, 'adone')
    assert.deepEqual([stats().deadline, stats().arrived], [0, 1])
  })

  test(`${style}: a client who left a response that had begun before the middleware gets nothing`, async (t) => {
    const { controller, stats } = search()
    let isDone = false
    const { port } = await listen(t, async (req, res) => {
      res.writeHead(200).write('a')
      await once(res, 'close')
      await app(controller)(req, res)
      isDone = true
    })
    const stream = connect(port, '127.0.0.1')
    stream.write('GET /quick HTTP/1.1\r\nhost: a\r\n\r\n')
    await once(stream, 'data')
    stream.destroy()
    await until(() => isDone)
    assert.deepEqual([stats().clientLeft, stats().running], [1, 0])
  })
}

test('plain: an error of classOf breaks off a response that has begun', async (t) => {
  const { controller } = search()
  const said = warnings(t)
  const handler = terminable(controller, (req) => req.url === '/page' ? 'page' : 'search', handle)
  const { get } = await listen(t, (req, res) => {
    res.writeHead(200).write('a')
    handler(req, res)
  })
  await assert.rejects(get('/page'))
  assert.equal((await get('/quick')).body, 'adone')
  assert.match(said.join(), /class page is not declared/)
})
