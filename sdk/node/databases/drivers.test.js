'use strict'
// Tests of each driver with the real daemon and a real database: which query is cancelled, and
// which never is.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { connect } = require('node:net')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { Controller, StopClient, Taken, Terminated, leased } = require('..')
const { requests } = require('../lib/token')
const { KINDS, PATIENCE, daemon, until, watch } = require('./stage')

const controller = new Controller({ search: { runMin: 600_000, runMax: 600_000 } })

/**
 * The ways to run a query, by driver and style. Each has the kind of the pool, and runs a query on
 * the pool or on a connection that the pool lends.
 */
const STYLES = {
  'pg, promises': { kind: 'pg', ask: (pool, sql) => pool.query(sql) },
  'pg, callbacks': { kind: 'pg', ask: (pool, sql) => promised((done) => pool.query(sql, done)) },
  'pg, a client that is lent': {
    kind: 'pg',
    ask: async (pool, sql) => {
      const client = await pool.connect()
      try { return await client.query({ text: sql }) } finally { client.release() }
    }
  },
  'mysql2, promises': { kind: 'mysql2', isPromise: true, ask: (pool, sql) => pool.query(sql) },
  'mysql2, prepared': { kind: 'mysql2', isPromise: true, ask: (pool, sql) => pool.execute(sql) },
  'mysql2, callbacks': { kind: 'mysql2', ask: (pool, sql) => promised((done) => pool.query(sql, done)) },
  'mysql2, a connection that is lent': {
    kind: 'mysql2',
    ask: async (pool, sql) => {
      const connection = await promised((done) => pool.getConnection(done))
      try { return await promised((done) => connection.query(sql, [], done)) } finally { connection.release() }
    }
  }
}

function promised (ask) {
  return new Promise((resolve, reject) => ask((error, result) => error ? reject(error) : resolve(result)))
}

function open (kind, isPromise, size) {
  if (kind === 'pg') return new (require('pg').Pool)({ connectionString: KINDS.pg.url, max: size })
  return require(isPromise ? 'mysql2/promise' : 'mysql2').createPool({ uri: KINDS.mysql2.url, connectionLimit: size })
}

for (const [style, { kind, isPromise, ask }] of Object.entries(STYLES)) {
  const { address, name, sleep: sleeps } = KINDS[kind]

  async function stage (t, size = 1) {
    const site = await daemon(t)
    const stopClient = new StopClient(site.path, { patience: PATIENCE })
    const pool = leased(open(kind, isPromise, size), stopClient, name)
    t.after(() => {
      stopClient.close()
      return isPromise || kind === 'pg' ? pool.end() : promised((done) => pool.end(done))
    })
    const runOf = (pool) => (request, sql, token = controller.begin('search', Infinity, request)) =>
      requests.run(token, () => ask(pool, sql)).then(() => 'done').finally(() => token.end())
    const run = runOf(pool)
    return { pool, run, runOf, stopClient, site, ...await watch(t, kind) }
  }
  const skip = address ? false : `NOT TESTED: ${kind}'s database is not there`

  test(`${style}: a stopped query is cancelled, and what comes after it runs`, { skip }, async (t) => {
    const { run, running, site } = await stage(t)
    const ended = run('a1', sleeps(60)).catch((error) => error)
    await until(async () => await running() === 1)
    assert.equal(await site.stop('a1'), '1 OK cancelled=1 spared=0')
    const error = await ended
    assert.ok(error instanceof Terminated && error.reason === 'client_left' && error.cause, error)
    await until(async () => await running() === 0)
    assert.equal(await run('a2', 'SELECT 1'), 'done')
    await assert.rejects(run('a1', sleeps(60)), Terminated)
  })

  test(`${style}: a request that is over here is cancelled there`, { skip }, async (t) => {
    const { run, running, stopClient } = await stage(t)
    const token = controller.begin('search', Infinity, 'b1')
    const ended = run('b1', sleeps(60), token).catch((error) => error)
    await until(async () => await running() === 1)
    token.leave()
    assert.ok(await ended instanceof Terminated)
    await until(async () => await running() === 0)
    await until(() => stopClient.stats().stops === 1)
  })

  test(`${style}: a query that is longer than its request may run is cancelled`, { skip }, async (t) => {
    const { run, running } = await stage(t)
    const short = new Controller({ search: { runMin: 300, runMax: 300 } })
    const error = await run('b2', sleeps(60), short.begin('search', Infinity, 'b2')).catch((error) => error)
    assert.ok(error instanceof Terminated && error.reason === 'ran_too_long', error)
    await until(async () => await running() === 0)
  })

  test(`${style}: a request of the same name in another service runs on to its end`, { skip }, async (t) => {
    const { run, runOf, running, site } = await stage(t)
    const stopClient = new StopClient(site.path, { patience: PATIENCE })
    const other = leased(open(kind, isPromise, 1), stopClient, name)
    t.after(() => {
      stopClient.close()
      return isPromise || kind === 'pg' ? other.end() : promised((done) => other.end(done))
    })
    const token = controller.begin('search', Infinity, 'b3')
    const ended = run('b3', sleeps(60), token).catch((error) => error)
    const caller = runOf(other)('b3', sleeps(1))
    await until(async () => await running() === 2)
    token.leave()
    assert.ok(await ended instanceof Terminated)
    assert.equal(await caller, 'done')
    assert.equal(await runOf(other)('b3', 'SELECT 1'), 'done', 'and what it asks next')
  })

  test(`${style}: a write is spared, and what comes after it does not begin`, { skip }, async (t) => {
    const { ask: see, run, running, site } = await stage(t)
    await see('DROP TABLE IF EXISTS orders')
    await see('CREATE TABLE orders (a INT)')
    const written = run('c1', `INSERT INTO orders SELECT 1 FROM (${sleeps(0.5)}) AS s`)
    await until(async () => await running() === 1)
    assert.equal(await site.stop('c1'), '1 OK cancelled=0 spared=1')
    assert.equal(await written, 'done')
    await assert.rejects(run('c1', 'SELECT 1'), Terminated)
    assert.deepEqual(await see('SELECT a FROM orders').then((rows) => rows.map(({ a }) => a)), [1])
    await see('DROP TABLE orders')
  })

  test(`${style}: of those who share a pool only the stopped ones are hit`, { skip }, async (t) => {
    const { run, site } = await stage(t, 2)
    let hit = 0
    for (let round = 0; round < 100; round++) {
      const victims = [0, 1, 2].map((i) => run(`v${round}-${i}`, sleeps(0.003)).catch((error) => {
        assert.ok(error instanceof Terminated, error)
        hit++
      }))
      const innocents = [0, 1, 2].map((i) => run(`i${round}-${i}`, sleeps(0.003)))
      const stops = [0, 1, 2].map((i) => sleep(round / 12).then(() => site.stop(`v${round}-${i}`)))
      assert.deepEqual(await Promise.all(innocents), ['done', 'done', 'done'], `round ${round}`)
      await Promise.all([...victims, ...stops])
    }
    assert.ok(hit > 10, `only ${hit} of 300 were hit at all`)
  })

  test(`${style}: without a daemon everything works, and with one that dies as well`, { skip }, async (t) => {
    const { run, running, stopClient, site } = await stage(t)
    const ended = run('d1', sleeps(0.5))
    await until(async () => await running() === 1)
    await site.kill()
    assert.equal(await ended, 'done')
    assert.equal(stopClient.stats().spoiled, 1)
    assert.equal(await run('d2', 'SELECT 1'), 'done', 'on another connection')
    await site.start()
    await until(async () => await run('d3', 'SELECT 1') && stopClient.stats().leased > 1)
  })

  test(`${style}: what another says he has is closed, and a pool takes another one`, { skip }, async (t) => {
    const { pool, stopClient, site } = await stage(t)
    const token = controller.begin('search', Infinity, 'e1')
    const number = async () => {
      const query = `SELECT ${kind === 'pg' ? 'pg_backend_pid' : 'connection_id'}() AS n`
      const answer = await requests.run(token, () => ask(pool, query))
      return Number((answer.rows ?? (isPromise ? answer[0] : answer))[0].n)
    }
    const taken = await number()
    const other = connect(site.path)
    t.after(() => other.destroy())
    other.write(`1 LEASE other ${name} ${taken}\n`)
    await once(other, 'data')
    if (style.includes('lent')) await assert.rejects(number(), Taken)
    assert.notEqual(await number(), taken)
    assert.equal(stopClient.stats().taken, 1)
  })

  test(`${style}: whoever waits for a connection is called back in his own context`, { skip }, async (t) => {
    const { pool, stopClient } = await stage(t)
    const tokens = Array.from({ length: 20 }, (_, i) => controller.begin('search', Infinity, `w${i}`))
    const seen = await Promise.all(tokens.map((token) => requests.run(token, async () => {
      await ask(pool, 'SELECT 1')
      return promised((done) => ask(pool, 'SELECT 1').then(() => done(null, requests.getStore())))
    })))
    assert.deepEqual(seen.map(({ request }) => request), tokens.map(({ request }) => request))
    assert.equal(stopClient.stats().leased, 40)
  })
}
