'use strict'
// Plain http and Express, Connect and their like.
//
// A handler of plain http is a function whose end we see, so we answer for it if it was terminated and has said
// nothing. In Connect's style nobody sees a handler's end: its error comes to the application's error handling
// with `status` 504 and `headers`, which Express makes the answer of; `answerTerminated` makes ours.
//
// The response has begun when its head is written: every way to write leads through `writeHead`.

const { SettingError } = require('./classes')
const { requests } = require('./token')

const HEADER = 'bywash-deadline'

// The type of problem that the gateway names as well (draft of the IETF on RateLimit), and none (RFC 9457).
const BUSY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
const PLAIN = 'about:blank'

/**
 * A handler for `http.createServer` whose requests can be terminated. `classOf` is the name of a class, or a
 * function from the request to one, or to null: such a request passes untouched.
 */
function terminable (controller, classOf, handler, options) {
  const begin = beginner(controller, classOf, options)
  return (req, res) => {
    const token = begin(req, res)
    if (!token) return handler(req, res)
    // Who comes with nothing left need not begin.
    if (token.isTerminated) return answer(req, res, token.terminated())
    return requests.run(token, () => concluded(token, handler, req, res))
  }
}

/** The same for `app.use` and `app.get(path, …, handler)` of Express and its like. */
function middleware (controller, classOf, options) {
  const begin = beginner(controller, classOf, options)
  return (req, res, next) => {
    const token = begin(req, res)
    if (!token) return next()
    if (token.isTerminated) return next(token.terminated())
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

function beginner (controller, classOf, { trustDeadline = true, ...others } = {}) {
  const unknown = Object.keys(others)
  if (unknown.length > 0) throw new SettingError(`there is no option ${unknown.join(', ')}`)
  if (typeof classOf !== 'function') {
    controller.knows(classOf)
    return (req, res) => begin(controller, classOf, trustDeadline, req, res)
  }
  return (req, res) => {
    const name = classOf(req)
    return name == null ? null : begin(controller, name, trustDeadline, req, res)
  }
}

function begin (controller, name, trustDeadline, req, res) {
  const token = controller.begin(name, trustDeadline ? timeLeft(req.headers[HEADER]) : Infinity)
  req.bywash = token
  const { writeHead } = res
  res.writeHead = function (...args) {
    token.settle()
    return writeHead.apply(this, args)
  }
  // `close` comes in every end; only then is it known that the response is complete.
  res.once('close', () => {
    if (!res.writableFinished) token.leave()
    token.end()
  })
  token.watch()
  return token
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
  const isSpent = reason === 'deadline'
  const title = isSpent
    ? 'The time that was left to this request is over.'
    : `The site is very busy. Please try again in ${again} s.`
  const isJson = /json/i.test(req.headers.accept ?? '')
  const problem = { type: isSpent ? PLAIN : BUSY, title, status: 504, reason, 'retry-after': again }
  const body = isJson ? JSON.stringify(problem) : `${title} (${reason})\n`
  // What the handler had in mind for its own response.
  for (const name of res.getHeaderNames()) {
    if (/^(content-.*|etag|last-modified|transfer-encoding)$/.test(name)) res.removeHeader(name)
  }
  res.statusCode = 504
  res.statusMessage = 'Gateway Timeout'
  res.setHeader('Content-Type', isJson ? 'application/problem+json' : 'text/plain; charset=utf-8')
  res.setHeader('Content-Length', Buffer.byteLength(body))
  res.setHeader('Retry-After', String(again))
  res.setHeader('Cache-Control', 'no-store')
  res.end(body)
}

module.exports = { answerTerminated, middleware, terminable }
