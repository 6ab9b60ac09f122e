// Handlers of each framework in TypeScript. types.test.js compiles this file.

import * as http from 'node:http'
import * as http2 from 'node:http2'
import { getRequestListener } from '@hono/node-server'
import type { HttpBindings } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { Controller, answerTerminated, checkpoint, middleware, terminable } from 'bywash'

const controller = new Controller({ search: { runMin: 1000, runMax: 30_000 } })
const classOf = (req: http.IncomingMessage) => req.url?.startsWith('/search') ? 'search' : null

async function search (req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
  checkpoint()
  await fetch('http://127.0.0.1', { signal: req.bywash?.signal })
  req.bywash?.cancelTermination()
  // @ts-expect-error: the token may be missing. With the type `any`, this line would be accepted.
  req.bywash.cancelTermination()
  res.end()
}

http.createServer(terminable(controller, classOf, search))
http2.createServer(terminable(controller, 'search', (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => {
  const signal: AbortSignal | undefined = req.bywash?.signal
  // @ts-expect-error: as above
  req.bywash.cancelTermination()
  res.end(String(signal?.aborted))
}))

const inExpress = express()
inExpress.get('/search', middleware(controller, 'search'), search)
inExpress.get('/found', middleware(controller, 'search'), async (req, res) => {
  // @ts-expect-error: as above
  req.bywash.cancelTermination()
  res.json(req.bywash?.reason)
})
inExpress.use(answerTerminated)

const inFastify = Fastify({ serverFactory: (handler) => http.createServer(terminable(controller, 'search', handler)) })
const terminate = middleware(controller, 'search')
inFastify.addHook('onRequest', (request, reply, done) => terminate(request.raw, reply.raw, done))
inFastify.setErrorHandler((error, request, reply) => {
  answerTerminated(error, request.raw, reply.raw, (error) => { throw error })
  reply.hijack()
})
inFastify.get('/search', async (request) => request.raw.bywash?.reason)

const inKoa = new Koa()
inKoa.use(async (ctx) => { ctx.body = ctx.req.bywash?.reason })
http.createServer(terminable(controller, classOf, inKoa.callback()))

const inHono = new Hono<{ Bindings: HttpBindings }>()
inHono.onError((error, c) => {
  answerTerminated(error, c.env.incoming, c.env.outgoing, (error) => { throw error })
  return c.body(null)
})
inHono.get('/search', (c) => c.text(String(c.env.incoming.bywash?.reason)))
http.createServer(terminable(controller, classOf, getRequestListener(inHono.fetch)))
