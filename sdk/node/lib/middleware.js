'use strict'
// Plain http and Express, Connect and their like.
//
// A handler of plain http is a function whose end we see, so we answer for it if it was terminated and has said
// nothing. In Connect's style nobody sees a handler's end: its error comes to the application's error handling
// with `status` 504 and `headers`; `answerTerminated` makes ours of it.
//
// The response has begun when its head is written: every way to write leads through `writeHead`.

const { inspect } = require('node:util')
const { SettingError } = require('./classes')
const { requests } = require('./token')

const HEADER = 'bywash-deadline'

// The type of problem that the gateway names as well (draft of the IETF on RateLimit), and none (RFC 9457).
const BUSY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
const PLAIN = 'about:blank'

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
      res.writeHead(500, { 'Content-Length': 0, 'Cache-Control': 'no-store' }).end()
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
  answer(req, res, req.bywash.terminated())
}

/** Whether a request that begins is over already: nothing is left to it, or its client. */
function isOver (token) {
  token.look()
  return token.reason !== null
}

function beginner (controller, classOf, { trustDeadline = true, ...others } = {}) {
  const unknown = Object.keys(others)
  if (unknown.length > 0) throw new SettingError(`there is no option ${unknown.join(', ')}`)
  const isOne = typeof classOf !== 'function'
  if (isOne) controller.knows(classOf)
  return (req, res) => {
    if (req.bywash) return null
    const name = isOne ? classOf : classOf(req)
    return name == null ? null : begin(controller, name, trustDeadline, req, res)
  }
}

function begin (controller, name, trustDeadline, req, res) {
  const token = controller.begin(name, trustDeadline ? timeLeft(req.headers[HEADER]) : Infinity)
  req.bywash = token
  res[FIELDS] = Object.entries(res.getHeaders())
    .map(([name, value]) => [name, Array.isArray(value) ? [...value] : value])
  const { writeHead } = res
  res.writeHead = function (...args) {
    token.settle()
    return writeHead.apply(this, args)
  }
  // Only at its close is it known that the response is complete.
  onceClosed(req, res, () => {
    if (!isComplete(req, res)) token.leave()
    token.end()
  })
  return token
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
  }
  if (token.reason !== null && !res.headersSent) answer(req, res, token.terminated())
}

/** The deadline that a request brings along, in milliseconds. Anything but 1 to 9 digits is none. */
function timeLeft (value) {
  return value !== undefined && /^[0-9]{1,9}$/.test(value) ? Number(value) : Infinity
}

/** 504: problem+json (RFC 9457) if JSON is accepted, else a line of text. */
function answer (req, res, { reason, retryAfterSeconds: again }) {
  const isBusy = reason === 'ran_too_long'
  const title = isBusy
    ? `The site is very busy. Please try again in ${again} s.`
    : 'The time that was left to this request is over.'
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
