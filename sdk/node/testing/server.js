'use strict'
// The common part of the tests on a server. It is not in the folder test, where every file is a
// test.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const http = require('node:http')
const { connect } = require('node:net')
const { setTimeout: sleep } = require('node:timers/promises')
const { Controller } = require('..')

// Milliseconds: longer than anything takes on a busy machine, and shorter than a handler that is
// not stopped.
const PATIENCE = 60_000
const ENDLESS = 600_000

// A class in an interval that does not end, on a clock that the test advances.
const BOUNDS = { runMin: 1000, runMax: 9000, interval: 3_600_000 }
const clock = () => clock.now
clock.now = 0

function search () {
  const controller = new Controller({ search: BOUNDS, nested: BOUNDS }, { clock })
  return { controller, stats: () => controller.stats().search }
}

/**
 * A small Connect: runs handlers one after the other. An error goes to the handlers that take four
 * arguments.
 */
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

/** Starts a server on loopback, and returns a function that sends requests to it. */
async function listen (t, handler) {
  const server = http.createServer(handler)
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
  return { get, port }
}

/**
 * Sends a text over a socket, and resolves to everything that the server sends until it closes the
 * connection.
 */
async function raw (port, text) {
  const stream = connect(port, '127.0.0.1')
  stream.write(text)
  let said = ''
  for await (const chunk of stream) said += chunk
  return said
}

async function until (holds) {
  for (let turn = 0; turn < PATIENCE / 10; turn++) {
    if (holds()) return
    await sleep(10)
  }
  assert.fail('it did not come about')
}

/** Returns a list that gets the name and the text of each warning of this process. */
function warnings (t) {
  const said = []
  const listener = ({ name, message }) => said.push(`${name}: ${message}`)
  process.on('warning', listener)
  t.after(() => process.off('warning', listener))
  return said
}

module.exports = { BOUNDS, ENDLESS, clock, listen, raw, row, search, until, warnings }
