'use strict'
// The application of sdk/conformance in JavaScript.

const http = require('node:http')
const { setTimeout: sleep } = require('node:timers/promises')
const { Controller, Query, StopClient, Taken, Terminated, current, outgoing, terminable } = require('../../../node')

const HOUR = 3_600_000
const stopClient = new StopClient()
const controller = new Controller({ work: { runMin: 1000, runMax: HOUR }, busy: { runMin: 50, runMax: 50 } })

/** Waits until the request is over. */
const wait = () => sleep(HOUR, null, { signal: current().signal })

async function query (res) {
  let hasBegun = false
  try {
    await new Query(stopClient, 'shop', () => 7, () => {}).run(() => {
      hasBegun = true
      return wait()
    })
  } catch (error) {
    if (error instanceof Taken) return res.end('taken')
    if (hasBegun || !(error instanceof Terminated)) throw error
    res.end(`stopped ${error.reason}`)
  }
}

const handlers = {
  '/name': (res) => res.end(current().request),
  '/left': (res) => res.end(String(Math.floor(current().left()))),
  '/outgoing': (res) => res.end(JSON.stringify(outgoing())),
  '/wait': wait,
  '/busy': wait,
  '/query': query
}

const server = http.createServer(terminable(
  controller,
  (req) => req.url === '/busy' ? 'busy' : 'work',
  (req, res) => handlers[req.url](res)
))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
