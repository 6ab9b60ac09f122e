'use strict'
// Middleware for plain http, and for Express, Connect and similar frameworks.
//
// A handler of plain http is a function whose end is visible, so the middleware answers for it if
// it was terminated and has not answered. In Connect's style, a handler's end is not visible: its
// error comes to the application's error handling with `status` 504 and `headers`, and
// `answerTerminated` turns it into our answer.
//
// The response has begun when its head is written, and every way to write calls `writeHead`. An
// event of a request or a response may come from its connection, which works for no request. So
// `emit` is wrapped to set the current request.

const { randomBytes } = require('node:crypto')
const { inspect } = require('node:util')
const { SettingError } = require('./classes')
const { Terminated, requests } = require('./token')

const HEADER = 'bywash-deadline'
const REQUEST = 'bywash-request'

// The problem types: the one that the gateway uses as well (IETF draft on RateLimit), and none
// (RFC 9457).
const BUSY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
const PLAIN = 'about:blank'

const TITLES = {
  deadline: 'The deadline of this request has passed.',
  client_left: 'The client of this request has left.'
}

/** The codes of stream errors that mean that the client has left. */
const GONE = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_PREMATURE_CLOSE'])

/** The key under which a response keeps its header fields from before its handler began. */
const FIELDS = Symbol('bywash.fields')

/**
 * Returns a handler for `http.createServer` whose requests can be terminated. `classOf` is the name
 * of a class, or a function that returns the class of a request or null. A request without a class
 * passes untouched, and so does a request that has a token of an outer middleware.
 */
function terminable (controller, classOf, handler, options) {
  const begin = beginner(controller, classOf, options)
  return (req, res) => {
    let token
    try {
      token = begin(req, res)
    } catch (error) {
      // If it were thrown from here, it would end the process.
      process.emitWarning(`the class of a request could not be found: ${inspect(error)}`, 'BywashWarning')
      if (res.headersSent) res.destroy(error)
      else res.writeHead(500, { 'Content-Length': 0, 'Cache-Control': 'no-store' }).end()
      return
    }
    if (!token) return handler(req, res)
    // A request that arrives with no time left does not begin.
    if (isOver(token)) return answer(req, res, token.terminated())
    return requests.run(token, () => concluded(token, handler, req, res))
  }
}

/**
 * Returns a middleware for `app.use` and `app.get(path, …, handler)` of Express and similar
 * frameworks.
 */
function middleware (controller, classOf, options) {
  const begin = beginner(controller, classOf, options)
  return (req, res, next) => {
    let token
    try {
      token = begin(req, res)
    } catch (error) {
      // To `next`, a falsy value is not an error.
      return next(error || new SettingError(`classOf threw ${error}`))
    }
    if (!token) return next()
    if (isOver(token)) return next(token.terminated())
    requests.run(token, next)
  }
}

/**
 * An error handler of Express and similar frameworks that answers terminated requests like the
 * gateway.
 */
function answerTerminated (error, req, res, next) {
  // Work that waits on a signal rejects with errors of its own (`AbortError`), so ask the token.
  const isTerminated = req.bywash !== undefined && req.bywash.reason !== null
  if (!isTerminated || res.headersSent) return next(error)
  warn(error, req.bywash)
  answer(req, res, req.bywash.terminated())
}

/**
 * Returns whether a request is over at its beginning: no time is left to it, or its client has
 * left.
 */
function isOver (token) {
  token.look()
  return token.reason !== null
}

function beginner (controller, classOf, { trustDeadline = true, trustRequest = true, ...others } = {}) {
  const unknown = Object.keys(others)
  if (unknown.length > 0) throw new SettingError(`unknown option: ${unknown.join(', ')}`)
  const isOne = typeof classOf !== 'function'
  if (isOne) controller.knows(classOf)
  return (req, res) => {
    if (req.bywash) return null
    const name = isOne ? classOf : classOf(req)
    return name == null ? null : begin(controller, name, { trustDeadline, trustRequest }, req, res)
  }
}

function begin (controller, name, { trustDeadline, trustRequest }, req, res) {
  const left = trustDeadline ? timeLeft(req.headers[HEADER]) : Infinity
  const called = (trustRequest && nameOf(req.headers[REQUEST])) || newName()
  const token = controller.begin(name, left, called, passedOn(req.headers, called))
  req.bywash = token
  res[FIELDS] = Object.entries(res.getHeaders())
    .map(([name, value]) => [name, Array.isArray(value) ? [...value] : value])
  // A middleware in front may have begun the response.
  if (res.headersSent) token.settle()
  const { writeHead } = res
  res.writeHead = function (...args) {
    token.settle()
    return writeHead.apply(this, args)
  }
  emitFor(token, req)
  emitFor(token, res)
  // Only at its close is it known whether the response is complete.
  onceClosed(req, res, () => {
    if (!isComplete(req, res)) token.leave()
    token.end()
  })
  return token
}

/** Makes the listeners of a request or response run with the token as the current one. */
function emitFor (token, emitter) {
  const { emit } = emitter
  emitter.emit = function (...args) {
    return requests.run(token, () => emit.apply(this, args))
  }
}

/**
 * Returns whether a closed response was sent completely. In HTTP/2, a response reports that it is
 * finished however it ended.
 */
function isComplete (req, res) {
  return req.httpVersionMajor < 2 ? res.writableFinished : res.writableEnded && res.stream.rstCode === 0
}

/** The callbacks of the responses that wait for their turn on a connection, by connection. */
const waiting = new WeakMap()

/**
 * Calls `ended`, maybe twice, when a response is over. The response may have been over before this
 * call, if something delayed the request in front of the middleware. A response that waits behind
 * another one of its connection (pipelining) has no socket yet, and is not notified of the
 * connection's end. Therefore there is one listener for each connection, since any number of
 * responses may wait.
 */
function onceClosed (req, res, ended) {
  if (req.httpVersionMajor < 2 ? req.socket.destroyed : res.stream.destroyed) return ended()
  res.once('close', ended)
  if (res.socket !== null) return
  let all = waiting.get(req.socket)
  if (!all) {
    all = new Set()
    waiting.set(req.socket, all)
    req.socket.once('close', () => all.forEach((each) => each()))
  }
  all.add(ended)
  res.once('close', () => all.delete(ended))
}

/**
 * Runs a handler to its end. If the request was terminated and the handler has not answered,
 * answers in the handler's place.
 */
async function concluded (token, handler, req, res) {
  try {
    await handler(req, res)
  } catch (error) {
    // Other errors are the application's, unless its request was terminated.
    if (token.reason === null) throw error
    warn(error, token)
    // The handler has begun an answer of its own, which will not be completed.
    if (res.headersSent && !res.writableEnded) res.destroy(error)
  }
  if (token.reason !== null) answer(req, res, token.terminated())
}

/**
 * Emits a warning for an error of a terminated request, unless the error or the one that it wraps only
 * reports the termination. Some libraries wrap the error of a query or of a stream.
 */
function warn (error, { reason }) {
  const isTermination = (of) => of instanceof Terminated || of?.name === 'AbortError'
  const isOfClient = reason !== 'ran_too_long' && GONE.has(error?.code)
  // Libraries keep the error of a query in a field: Drizzle in `cause`, Sequelize in `original`, and
  // TypeORM in `driverError`.
  const all = [error, error?.cause, error?.original, error?.driverError]
  if (all.some(isTermination) || isOfClient) return
  process.emitWarning(`a terminated request ended with an error: ${inspect(error)}`, 'BywashWarning')
}

/**
 * Returns the time that is left to a request by the deadline in its header, in milliseconds.
 * Anything but 1 to 9 digits counts as no deadline.
 */
function timeLeft (value) {
  return value !== undefined && /^[0-9]{1,9}$/.test(value) ? Number(value) : Infinity
}

/**
 * Returns the name of a request from its header, or null if it is not valid. Node joins several
 * values with a comma, and the result is not valid either.
 */
function nameOf (value) {
  return value !== undefined && /^[A-Za-z0-9._:-]{1,128}$/.test(value) ? value : null
}

/** Returns a name for a request without one, in the format of the names of mod_bywash_sentry. */
function newName () {
  return randomBytes(8).toString('hex')
}

/** Returns the header fields that calls to other services carry unchanged. */
function passedOn ({ traceparent, tracestate }, called) {
  const fields = called === null ? {} : { [REQUEST]: called }
  if (traceparent === undefined || traceparent.includes(',')) return fields
  fields.traceparent = traceparent
  // Without a traceparent it has no meaning.
  if (tracestate !== undefined) fields.tracestate = tracestate
  return fields
}

/**
 * Answers a terminated request with 504. The body is problem+json (RFC 9457) if the client accepts
 * JSON, else a line of text. Does nothing if the response has begun.
 */
function answer (req, res, { reason, retryAfterSeconds: again }) {
  if (res.headersSent) return
  const isBusy = reason === 'ran_too_long'
  const title = isBusy ? `The site is very busy. Please try again in ${again} s.` : TITLES[reason]
  const isJson = /json/i.test(req.headers.accept ?? '')
  const problem = { type: isBusy ? BUSY : PLAIN, title, status: 504, reason }
  if (isBusy) problem['retry-after'] = again
  const body = isJson ? JSON.stringify(problem) : `${title} (${reason})\n`
  // Drop the fields of the handler's own response, and restore those from before the handler began.
  for (const name of res.getHeaderNames()) res.removeHeader(name)
  for (const [name, value] of res[FIELDS] ?? []) res.setHeader(name, value)
  res.statusCode = 504
  // HTTP/2 has no status message.
  if (req.httpVersionMajor < 2) res.statusMessage = 'Gateway Timeout'
  res.setHeader('Content-Type', isJson ? 'application/problem+json' : 'text/plain; charset=utf-8')
  res.setHeader('Content-Length', Buffer.byteLength(body))
  res.setHeader('Cache-Control', 'no-store')
  if (isBusy) res.setHeader('Retry-After', String(again))
  res.end(req.method === 'HEAD' ? undefined : body)
}

module.exports = { answerTerminated, middleware, terminable }
