'use strict'
// Plain http and Express, Connect and their like.
//
// A handler of plain http is a function whose end we see, so we answer for it if it was terminated and has said
// nothing. In Connect's style nobody sees a handler's end: its error comes to the application's error handling
// with `status` 504 and `headers`; `answerTerminated` makes ours of it.
//
// The response has begun when its head is written: every way to write leads through `writeHead`. An event of a request
// or a response may come from its connection, which works for no request: `emit` says for which.

const { randomBytes } = require('node:crypto')
const { inspect } = require('node:util')
const { SettingError } = require('./classes')
const { Terminated, requests } = require('./token')

const HEADER = 'bywash-deadline'
const REQUEST = 'bywash-request'

// The type of problem that the gateway names as well (draft of the IETF on RateLimit), and none (RFC 9457).
const BUSY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
const PLAIN = 'about:blank'

const TITLES = {
  deadline: 'The time that was left to this request is over.',
  client_left: 'The client of this request has left.'
}

/** What the streams of a client who has left fail with. */
const GONE = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_PREMATURE_CLOSE'])

/** On a response: the fields that it had before its handler began. */
const FIELDS = Symbol('bywash.fields')

/**
 * A handler for `http.createServer` whose requests can be terminated. `classOf` is the name of a class, or a
 * function from the request to one, or to null: such a request passes untouched, as does one that has a token of a
 * middleware around this one.
 */
function terminable (controller, classOf, handler, options) {
  const begin = beginner(controller, classOf, options)
  return (req, res) => {
    let token
    try {
      token = begin(req, res)
    } catch (error) {
      // Thrown from here it would end the process.
      process.emitWarning(`a request of no class: ${inspect(error)}`, 'BywashWarning')
      if (res.headersSent) res.destroy(error)
      else res.writeHead(500, { 'Content-Length': 0, 'Cache-Control': 'no-store' }).end()
      return
    }
    if (!token) return handler(req, res)
    // Who comes with nothing left need not begin.
    if (isOver(token)) return answer(req, res, token.terminated())
    return requests.run(token, () => concluded(token, handler, req, res))
  }
}

/** The same for `app.use` and `app.get(path, …, handler)` of Express and its like. */
function middleware (controller, classOf, options) {
  const begin = beginner(controller, classOf, options)
  return (req, res, next) => {
    let token
    try {
      token = begin(req, res)
    } catch (error) {
      // What is falsy would not be an error to `next`.
      return next(error || new SettingError(`classOf threw ${error}`))
    }
    if (!token) return next()
    if (isOver(token)) return next(token.terminated())
    requests.run(token, next)
  }
}

/** An error handler of Express and its like: answers who was terminated as the gateway does. */
function answerTerminated (error, req, res, next) {
  // What waits on a signal rejects with errors of its own (`AbortError`), so the token is asked.
  const isTerminated = req.bywash !== undefined && req.bywash.reason !== null
  if (!isTerminated || res.headersSent) return next(error)
  warn(error, req.bywash)
  answer(req, res, req.bywash.terminated())
}

/** Whether a request that begins is over already: nothing is left to it, or its client. */
function isOver (token) {
  token.look()
  return token.reason !== null
}

function beginner (controller, classOf, { trustDeadline = true, trustRequest = true, ...others } = {}) {
  const unknown = Object.keys(others)
  if (unknown.length > 0) throw new SettingError(`there is no option ${unknown.join(', ')}`)
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
  // Somebody in front of the middleware may have begun it.
  if (res.headersSent) token.settle()
  const { writeHead } = res
  res.writeHead = function (...args) {
    token.settle()
    return writeHead.apply(this, args)
  }
  emitFor(token, req)
  emitFor(token, res)
  // Only at its close is it known that the response is complete.
  onceClosed(req, res, () => {
    if (!isComplete(req, res)) token.leave()
    token.end()
  })
  return token
}

/** Who listens to this request or response works for it. */
function emitFor (token, emitter) {
  const { emit } = emitter
  emitter.emit = function (...args) {
    return requests.run(token, () => emit.apply(this, args))
  }
}

/** Whether a response that is closed went out to its end. One of HTTP/2 says that it is finished in every end. */
function isComplete (req, res) {
  return req.httpVersionMajor < 2 ? res.writableFinished : res.writableEnded && res.stream.rstCode === 0
}

/** By connection: what its end means to the responses that wait for their turn on it. */
const waiting = new WeakMap()

/**
 * Calls `ended`, maybe twice, when a response is over; that may have been before, if something waited in front of the
 * middleware. One that waits behind another of the same connection (pipelining) has no socket yet and is not told
 * when that ends, so it listens itself: once for each connection, as any number may wait.
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

/** Runs a handler to its end, whatever that is; answers in its place if it was terminated. */
async function concluded (token, handler, req, res) {
  try {
    await handler(req, res)
  } catch (error) {
    // An error of another kind is the application's, unless a terminated request ran into it.
    if (token.reason === null) throw error
    warn(error, token)
    // Words of its own that nobody ends any more.
    if (res.headersSent && !res.writableEnded) res.destroy(error)
  }
  if (token.reason !== null) answer(req, res, token.terminated())
}

/** An error of a terminated request reaches nobody else, unless it says no more than that. */
function warn (error, { reason }) {
  const isTermination = error instanceof Terminated || error?.name === 'AbortError'
  const isOfClient = reason !== 'ran_too_long' && GONE.has(error?.code)
  if (isTermination || isOfClient) return
  process.emitWarning(`a terminated request ended with an error: ${inspect(error)}`, 'BywashWarning')
}

/** The deadline that a request brings along, in milliseconds. Anything but 1 to 9 digits is none. */
function timeLeft (value) {
  return value !== undefined && /^[0-9]{1,9}$/.test(value) ? Number(value) : Infinity
}

/** What a request is called. Of several values Node makes one with a comma, which is no name either. */
function nameOf (value) {
  return value !== undefined && /^[A-Za-z0-9._:-]{1,128}$/.test(value) ? value : null
}

/** A name for a request that brings none along, as mod_bywash_sentry makes it. */
function newName () {
  return randomBytes(8).toString('hex')
}

/** The fields that calls to others take along as they came. */
function passedOn ({ traceparent, tracestate }, called) {
  const fields = called === null ? {} : { [REQUEST]: called }
  if (traceparent === undefined || traceparent.includes(',')) return fields
  fields.traceparent = traceparent
  // Without the other it means nothing.
  if (tracestate !== undefined) fields.tracestate = tracestate
  return fields
}

/** 504: problem+json (RFC 9457) if JSON is accepted, else a line of text. Nothing if the response has begun. */
function answer (req, res, { reason, retryAfterSeconds: again }) {
  if (res.headersSent) return
  const isBusy = reason === 'ran_too_long'
  const title = isBusy ? `The site is very busy. Please try again in ${again} s.` : TITLES[reason]
  const isJson = /json/i.test(req.headers.accept ?? '')
  const problem = { type: isBusy ? BUSY : PLAIN, title, status: 504, reason }
  if (isBusy) problem['retry-after'] = again
  const body = isJson ? JSON.stringify(problem) : `${title} (${reason})\n`
  // What the handler had in mind for its own response; what stood there before it began concerns this one as well.
  for (const name of res.getHeaderNames()) res.removeHeader(name)
  for (const [name, value] of res[FIELDS] ?? []) res.setHeader(name, value)
  res.statusCode = 504
  // HTTP/2 has none.
  if (req.httpVersionMajor < 2) res.statusMessage = 'Gateway Timeout'
  res.setHeader('Content-Type', isJson ? 'application/problem+json' : 'text/plain; charset=utf-8')
  res.setHeader('Content-Length', Buffer.byteLength(body))
  res.setHeader('Cache-Control', 'no-store')
  if (isBusy) res.setHeader('Retry-After', String(again))
  res.end(req.method === 'HEAD' ? undefined : body)
}

module.exports = { answerTerminated, middleware, terminable }
