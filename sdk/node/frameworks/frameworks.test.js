'use strict'
// Tests of Fastify, Koa, Hono and NestJS: the examples of README.md, and applications of the same shape
// whose handlers run too long, answer themselves, or fail.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const http = require('node:http')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { getRequestListener } = require('@hono/node-server')
const { RESPONSE_ALREADY_SENT } = require('@hono/node-server/utils/response')
const Fastify = require('fastify')
const { Hono } = require('hono')
const Koa = require('koa')
const { Controller: Routes, Get, Module } = require('@nestjs/common')
const { NestFactory } = require('@nestjs/core')
const { FastifyAdapter } = require('@nestjs/platform-fastify')
const { Controller, answerTerminated, current, middleware, terminable } = require('..')
const { example } = require('../testing/readme')
const { ENDLESS, listen } = require('../testing/server')
const { compiled } = require('../testing/typescript')

const rethrow = (error) => { throw error }

/** Handlers by path. Each gets the token, and returns its answer. */
const HANDLERS = {
  '/found': async () => 'found',
  '/slow': (token) => sleep(ENDLESS, 'slow', { signal: token.signal }),
  '/loop': async (token) => { for (;;) token.checkpoint() },
  '/own': (token) => sleep(ENDLESS, 'slow', { signal: token.signal }).catch(() => 'own'),
  '/fails': async () => { throw new RangeError('no') }
}

const fastify = (options) => {
  const app = Fastify(options)
  app.setErrorHandler((error, request, reply) => {
    answerTerminated(error, request.raw, reply.raw, rethrow)
    reply.hijack()
  })
  for (const [path, handler] of Object.entries(HANDLERS)) app.get(path, (request) => handler(request.raw.bywash))
  return app
}

/** The example of NestJS in TypeScript, whose module is the only one that it has. */
const DECORATORS = { experimentalDecorators: true, module: 'commonjs', skipLibCheck: true }
const nestExample = () => example('@nestjs/core', ['TerminatedFilter', 'create'], (code) => compiled(code, DECORATORS))

/** Calls the decorators, for which JavaScript has no syntax. */
const nest = async (controller, ...adapter) => {
  class Handlers {}
  class Application {}
  for (const [path, handler] of Object.entries(HANDLERS)) {
    Handlers.prototype[path] = () => handler(current())
    Get(path)(Handlers.prototype, path, Object.getOwnPropertyDescriptor(Handlers.prototype, path))
  }
  Routes()(Handlers)
  Module({ controllers: [Handlers] })(Application)
  const app = await NestFactory.create(Application, ...adapter, { logger: false })
  const { TerminatedFilter } = nestExample()
  app.use(middleware(controller, 'search'))
  app.useGlobalFilters(new TerminatedFilter(app.getHttpAdapter()))
  await app.init()
  return app.getHttpAdapter().getInstance()
}

/** The ways to put each framework on a server of Node. Each returns the server's listener. */
const FRAMEWORKS = {
  'Fastify with a hook': async (controller) => {
    const app = fastify()
    const terminate = middleware(controller, 'search')
    app.addHook('onRequest', (request, reply, done) => terminate(request.raw, reply.raw, done))
    await app.ready()
    return app.routing
  },
  'Fastify with a server factory': async (controller) => {
    let listener
    const app = fastify({
      serverFactory: (handler) => {
        listener = terminable(controller, 'search', handler)
        return http.createServer(listener)
      }
    })
    await app.ready()
    return listener
  },
  Koa: (controller) => {
    const app = new Koa()
    app.silent = true
    app.use(async (ctx, next) => {
      try {
        await next()
      } catch (error) {
        answerTerminated(error, ctx.req, ctx.res, rethrow)
        ctx.respond = false
      }
    })
    app.use(async (ctx) => { ctx.body = await HANDLERS[ctx.path](ctx.req.bywash) })
    return terminable(controller, 'search', app.callback())
  },
  Hono: (controller) => {
    const app = new Hono()
    app.onError((error, c) => {
      answerTerminated(error, c.env.incoming, c.env.outgoing, rethrow)
      return RESPONSE_ALREADY_SENT
    })
    for (const [path, handler] of Object.entries(HANDLERS)) {
      app.get(path, async (c) => c.text(await handler(c.env.incoming.bywash)))
    }
    return terminable(controller, 'search', getRequestListener(app.fetch))
  },
  'NestJS on Express': (controller) => nest(controller),
  'NestJS on Fastify': async (controller) => {
    const app = await nest(controller, new FastifyAdapter())
    await app.ready()
    return app.routing
  }
}

for (const [framework, listener] of Object.entries(FRAMEWORKS)) {
  test(`${framework}: a handler that runs too long is answered, and its own answer stays`, async (t) => {
    const controller = new Controller({ search: { runMin: 500, runMax: 500 } })
    const { get } = await listen(t, await listener(controller))
    const { status, body } = await get('/found')
    assert.deepEqual([status, body], [200, 'found'])
    for (const path of ['/slow', '/loop']) {
      const { status, head, body } = await get(path, { accept: 'application/json' })
      assert.deepEqual([status, head.get('content-type')], [504, 'application/problem+json'], path)
      assert.deepEqual([head.get('retry-after'), head.get('cache-control')], ['10', 'no-store'], path)
      assert.equal(JSON.parse(body).reason, 'ran_too_long')
    }
    const own = await get('/own')
    assert.deepEqual([own.status, own.body], [200, 'own'])
    assert.equal((await get('/fails')).status, 500)
    assert.equal((await get('/found', { 'bywash-deadline': '0' })).status, 504)
    const { arrived, running, terminated } = controller.stats().search
    assert.deepEqual({ arrived, running, terminated }, { arrived: 6, running: 0, terminated: 3 })
  })
}

const ofServer = (name) => example(`require('${name}')`, ['server']).server.listeners('request')[0]

/** The listener of each example. */
const EXAMPLES = {
  fastify: async () => {
    const { app } = example("require('fastify')", ['app'])
    await app.ready()
    return app.routing
  },
  koa: ofServer,
  hono: ofServer,
  NestJS: async () => {
    const app = await nestExample().create()
    await app.init()
    return app.getHttpAdapter().getInstance()
  }
}

for (const [name, listener] of Object.entries(EXAMPLES)) {
  test(`the example of ${name} ends its call to another service`, async (t) => {
    const asked = []
    const { port } = await listen(t, (req, res) => {
      asked.push(once(res, 'close'))
      if (asked.length === 1) res.end('found')
    })
    process.env.BACKEND = `http://127.0.0.1:${port}`
    const { get } = await listen(t, await listener(name))
    const { status, body } = await get('/search')
    assert.deepEqual([status, body], [200, 'found'])
    const late = await get('/search', { 'bywash-deadline': '100' })
    assert.deepEqual([late.status, /\(deadline\)/.test(late.body)], [504, true])
    assert.equal(asked.length, 2)
    await Promise.all(asked)
  })
}
