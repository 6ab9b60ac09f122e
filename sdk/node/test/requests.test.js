'use strict'
// Tests of which requests the middleware takes, how each of them ends, and what becomes of an
// error.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const http = require('node:http')
const http2 = require('node:http2')
const { connect } = require('node:net')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { SettingError, Terminated, current, middleware, terminable } = require('..')
const { ENDLESS, clock, listen, raw, row, search, until, warnings } = require('../testing/server')

const wait = (req) => sleep(ENDLESS, null, { signal: req.bywash.signal })
const handle = (req, res) => req.url === '/wait' ? wait(req) : res.end('done')

test('requests of one connection that ends while they wait for their turn end once each', async (t) => {
  const { controller, stats } = search()
  const said = warnings(t)
  const { port } = await listen(t, terminable(controller, 'search', handle))
  const stream = connect(port, '127.0.0.1')
  // This is more than an emitter takes listeners without a warning. The last one is done, and waits
  // all the same.
  const one = (path) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`
  stream.write(one('/wait').repeat(20) + one('/quick'))
  await until(() => stats().running === 21)
  stream.destroy()
  await until(() => stats().running === 0)
  await sleep(1)
  assert.deepEqual([stats().arrived, stats().clientLeft, stats().running], [21, 21, 0])
  assert.deepEqual(said, [])
})

test('requests of one connection that are answered in turn are served, whatever becomes of it', async (t) => {
  const { controller, stats } = search()
  let isFirst = true
  const { port } = await listen(t, terminable(controller, 'search', (req, res) => {
    if (isFirst) setImmediate(() => res.end('done'))
    else res.end('done')
    isFirst = false
  }))
  const one = (close = '') => `GET / HTTP/1.1\r\nhost: a\r\n${close}\r\n`
  const said = await raw(port, one() + one() + one('connection: close\r\n'))
  assert.equal(said.match(/ 200 OK/g).length, 3)
  await until(() => stats().running === 0)
  assert.deepEqual([stats().arrived, stats().clientLeft], [3, 0])
})

test('a client who has left before the middleware was asked has left', async (t) => {
  const { controller, stats } = search()
  let isWaiting = false
  const errors = []
  const { port } = await listen(t, row(
    async (req, res, next) => {
      isWaiting = true
      await once(req.socket, 'close')
      next()
    },
    middleware(controller, 'search'),
    (req, res, next) => assert.fail('it began'),
    (error, req, res, next) => errors.push(error)
  ))
  const request = http.get({ port, host: '127.0.0.1' }).on('error', () => {})
  await until(() => isWaiting)
  request.destroy()
  await until(() => errors.length === 1)
  assert.ok(errors[0] instanceof Terminated, String(errors[0]))
  assert.deepEqual([stats().clientLeft, stats().running], [1, 0])
})

test('of two middlewares the outer one decides', async (t) => {
  const { controller, stats } = search()
  const seen = (req, res, next) => res.end(`${req.bywash.className} ${current().className}`)
  const names = ['search', 'nested']
  for (const app of [
    names.reduceRight((app, name) => terminable(controller, name, app), seen),
    row(...names.map((name) => middleware(controller, name)), seen)
  ]) {
    const { get } = await listen(t, app)
    assert.equal((await get('/')).body, 'search search')
  }
  await until(() => stats().running === 0)
  assert.deepEqual([stats().arrived, controller.stats().nested.arrived], [2, 0])
  const passing = terminable(controller, () => null, terminable(controller, 'nested', seen))
  const { get } = await listen(t, passing)
  assert.equal((await get('/')).body, 'nested nested', 'the outer one has nothing to do with it')
})

/** A `classOf` that throws or names an undeclared class, depending on the path. */
function wrong (req) {
  if (req.url === '/throws') throw new RangeError('no')
  if (req.url === '/nothing') throw undefined // eslint-disable-line no-throw-literal
  return req.url === '/page' ? 'page' : 'search'
}

test('plain: an error of classOf is an error of its request', async (t) => {
  const { controller, stats } = search()
  const said = warnings(t)
  const { get } = await listen(t, terminable(controller, wrong, handle))
  for (const path of ['/page', '/throws', '/nothing']) {
    const { status, head, body } = await get(path)
    assert.deepEqual([status, head.get('cache-control'), body], [500, 'no-store', ''], path)
  }
  await until(() => said.length === 3)
  assert.match(said[0], /^BywashWarning: .*class page is not declared/)
  assert.match(said[1], /RangeError: no/)
  assert.equal((await get('/quick')).status, 200)
  assert.equal(stats().arrived, 1)
})

test('connect: an error of classOf is an error of its request', async (t) => {
  const { controller, stats } = search()
  const errors = []
  const { get } = await listen(t, row(
    middleware(controller, wrong),
    (req, res, next) => handle(req, res),
    (error, req, res, next) => {
      errors.push(error)
      res.writeHead(500).end()
    }
  ))
  for (const path of ['/page', '/throws', '/nothing']) assert.equal((await get(path)).status, 500, path)
  assert.ok(errors[0] instanceof SettingError && errors[1] instanceof RangeError && errors[2] instanceof Error)
  assert.equal((await get('/quick')).status, 200)
  assert.equal(stats().arrived, 1)
})

test('who listens to a request or a response works for it, although the body comes late', async (t) => {
  const { controller, stats } = search()
  const seen = []
  const listens = (req, res) => {
    const see = (event) => () => seen.push(`${event} ${current()?.className}`)
    req.on('data', see('data')).on('end', see('end')).on('end', () => res.end('done'))
    res.on('close', see('close'))
  }
  const expected = ['data search', 'end search', 'close search']
  for (const app of [
    terminable(controller, 'search', listens),
    row(middleware(controller, 'search'), (req, res, next) => listens(req, res))
  ]) {
    const { port } = await listen(t, app)
    const stream = connect(port, '127.0.0.1').resume()
    stream.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\nconnection: close\r\n\r\n')
    await until(() => stats().running === 1)
    stream.write('body')
    await until(() => seen.length === 3)
    assert.deepEqual(seen.splice(0), expected)
  }
  const server = http2.createServer(terminable(controller, 'search', listens))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = http2.connect(`http://127.0.0.1:${server.address().port}`)
  t.after(() => { client.destroy(); server.close() })
  const stream = client.request({ ':path': '/', ':method': 'POST' }).resume()
  stream.on('error', () => {})
  await until(() => stats().running === 1)
  stream.end('body')
  await until(() => seen.length === 3)
  assert.deepEqual(seen, expected)
})

test('HTTP/2: the same answers, and streams and connections that end', async (t) => {
  const { controller, stats } = search()
  const said = warnings(t)
  const server = http2.createServer(terminable(controller, wrong, async (req, res) => {
    res.setHeader('X-Own', 'a')
    res.statusCode = 201
    await handle(req, res)
  }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = http2.connect(`http://127.0.0.1:${server.address().port}`)
  t.after(() => { client.destroy(); server.close() })
  const open = (path, fields = {}) => client.request({ ':path': path, ...fields }).on('error', () => {})
  const get = async (path, fields) => {
    const stream = open(path, fields)
    const [head] = await once(stream, 'response')
    let body = ''
    for await (const chunk of stream) body += chunk
    return { head, body, status: head[':status'] }
  }
  const quick = await get('/quick')
  assert.deepEqual([quick.status, quick.body, quick.head['x-own']], [201, 'done', 'a'])
  const late = get('/wait', { 'bywash-deadline': '1' })
  await until(() => stats().running === 1)
  clock.now += 1
  const { status, head, body } = await late
  assert.deepEqual([status, head['cache-control'], head['x-own']], [504, 'no-store', undefined])
  assert.match(body, /\(deadline\)/)
  const none = await get('/wait', { ':method': 'HEAD', 'bywash-deadline': '0' })
  assert.deepEqual([none.status, none.head['content-length'], none.body], [504, String(body.length), ''])
  await until(() => stats().running === 0)
  assert.deepEqual([stats().deadline, stats().clientLeft], [2, 0])
  // First one stream is left, then the connection of two.
  const left = open('/wait')
  await until(() => stats().running === 1)
  left.close(http2.constants.NGHTTP2_CANCEL)
  await until(() => stats().running === 0)
  open('/wait')
  open('/wait')
  await until(() => stats().running === 2)
  assert.deepEqual(said, [])
  assert.equal((await get('/page')).status, 500)
  client.destroy()
  await until(() => stats().running === 0)
  assert.equal(stats().clientLeft, 3)
})

test('an error has what makes an answer of it', () => {
  const answers = [['leave', undefined], ['look', 0]].map(([how, left]) => {
    const token = search().controller.begin('search', left)
    token[how]()
    return token.terminated()
  })
  const { controller } = search()
  const token = controller.begin('search')
  clock.now += 9000
  assert.throws(() => token.checkpoint(), (error) => answers.push(error) > 0)
  for (const error of answers) {
    assert.ok(error instanceof Terminated)
    assert.deepEqual([error.status, error.statusCode], [504, 504])
  }
  assert.deepEqual(answers.map(({ reason, headers }) => [reason, headers['Cache-Control'], headers['Retry-After']]), [
    ['client_left', 'no-store', undefined],
    ['deadline', 'no-store', undefined],
    ['ran_too_long', 'no-store', '3600']
  ])
})

test('a class that is not declared, or an option that is none, is an error at once', () => {
  const { controller } = search()
  assert.throws(() => terminable(controller, 'page', handle), /page is not declared/)
  assert.throws(() => middleware(controller, 'search', { trust: false }), /trust/)
})
