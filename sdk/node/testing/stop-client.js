'use strict'
// The common part of tests of leases: a request, and queries of it, on a fake daemon.

const { Controller, Query, StopClient } = require('..')
const { requests } = require('../lib/token')
const { daemon } = require('./daemon')

const cancelled = () => Object.assign(new Error('cancelled'), { code: '57014' })

async function stage (t, patience = 60_000) {
  const clock = () => clock.now
  clock.now = 0
  const watch = () => watch.now
  watch.now = 0
  const controller = new Controller({ search: { runMin: 1000, runMax: 9000 } }, { clock })
  const said = await daemon(t)
  const stopClient = new StopClient(said.path, { clock: watch, patience })
  t.after(() => stopClient.close())
  const closed = []
  /** Begins a request that no time ends. */
  const begin = (request = 'r1') => {
    const token = controller.begin('search', Infinity, request)
    token.settle()
    return token
  }
  const token = begin()
  const run = (work, of = token, number = 4711) => requests.run(of, () =>
    new Query(stopClient, 'shop', () => number, () => closed.push(number)).run(async () => work?.()))
  const answers = (by) => { said.answer = (words) => words.split(' ')[0] in by ? by[words.split(' ')[0]] : 'OK' }
  return { answers, begin, clock, closed, controller, daemon: said, run, stopClient, token, watch }
}

module.exports = { cancelled, stage }
