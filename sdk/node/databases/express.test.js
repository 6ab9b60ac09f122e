'use strict'
// Tests of the examples of README.md: Express, with pg, mysql2, and the query builders and mappers on them.

const assert = require('node:assert/strict')
const http = require('node:http')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { example } = require('../testing/readme')
const { listen } = require('../testing/server')
const { EXAMPLES, KINDS, PATIENCE, daemon, skipped, until, watch } = require('./stage')

for (const [required, [kind, poolName]] of Object.entries(EXAMPLES)) {
  const { sleep: sleeps, url } = KINDS[kind]
  const skip = skipped(kind, required)

  test(`Express and ${required}: whoever leaves or is stopped ends his query, and nobody else's`, { skip }, async (t) => {
    const site = await daemon(t)
    Object.assign(process.env, { BYWASH_STOPD: site.path, DATABASE: url })
    const { app, stopClient, [poolName]: pool } = example(`require('${required}')`, ['app', 'stopClient', poolName])
    // A busy machine answers late.
    stopClient.patience = PATIENCE
    t.after(() => { stopClient.close(); return (pool.end ?? pool.destroy ?? pool.close).call(pool) })
    const { running } = await watch(t, kind)
    const { get: ask, port } = await listen(t, app)
    const path = (query) => `/search?query=${encodeURIComponent(query)}`
    const get = (request, query, fields) => ask(path(query), { 'bywash-request': request, ...fields })
    const leave = (request, query) => {
      const headers = request === null ? {} : { 'bywash-request': request }
      const asking = http.get({ port, host: '127.0.0.1', path: path(query), headers })
      return asking.on('error', () => {})
    }
    const runs = (count) => until(async () => await running() === count)

    assert.equal((await get('q1', 'SELECT 1')).status, 200)
    // Without a gateway a request has the middleware's name.
    for (const [before, name] of ['q2', null].entries()) {
      const left = leave(name, sleeps(60))
      await runs(1)
      left.destroy()
      await runs(0)
      await until(() => stopClient.stats().stops === before + 1)
    }

    const stopped = get('q3', sleeps(60))
    await runs(1)
    assert.equal(await site.stop('q3', 'deadline'), '1 OK cancelled=1 spared=0')
    const { status, body } = await stopped
    assert.equal(status, 504)
    assert.match(body, /\(deadline\)/)
    assert.equal((await get('q3', 'SELECT 1')).status, 504, 'it does not begin')

    for (let round = 0; round < 50; round++) {
      const leaving = leave(`l${round}`, sleeps(0.003))
      const staying = [0, 1, 2, 3].map((i) => get(`s${round}-${i}`, sleeps(0.003)))
      await sleep(round % 20 / 2)
      leaving.destroy()
      assert.deepEqual((await Promise.all(staying)).map((answer) => answer.status), [200, 200, 200, 200])
    }
  })
}
