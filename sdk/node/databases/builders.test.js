'use strict'
// Tests of the query builders knex and Drizzle with the real daemon and a real database.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { Controller, StopClient, Terminated, leased } = require('..')
const { requests } = require('../lib/token')
const { KINDS, PATIENCE, daemon, until, watch } = require('./stage')

const controller = new Controller({ search: { runMin: 600_000, runMax: 600_000 } })

/**
 * The ways to open a pool of one connection, by builder. Each returns the functions that run a
 * text, that run `work` within a transaction, and that close the pool.
 */
const BUILDERS = {
  knex: (kind, lease) => {
    const afterCreate = (connection, done) => done(null, lease(connection))
    const knex = require('knex')({ client: kind, connection: KINDS[kind].url, pool: { min: 0, max: 1, afterCreate } })
    return {
      ask: (sql) => knex.raw(sql),
      transact: (work) => knex.transaction((transaction) => work((sql) => transaction.raw(sql))),
      close: () => knex.destroy()
    }
  },
  Drizzle: (kind, lease) => {
    const { sql: { raw } } = require('drizzle-orm')
    const { drizzle } = require(kind === 'pg' ? 'drizzle-orm/node-postgres' : 'drizzle-orm/mysql2')
    const pool = lease(kind === 'pg'
      ? new (require('pg').Pool)({ connectionString: KINDS.pg.url, max: 1 })
      : require('mysql2/promise').createPool({ uri: KINDS.mysql2.url, connectionLimit: 1 }))
    const database = drizzle({ client: pool })
    return {
      ask: (sql) => database.execute(raw(sql)),
      transact: (work) => database.transaction((transaction) => work((sql) => transaction.execute(raw(sql)))),
      close: () => pool.end()
    }
  }
}

/** Drizzle wraps the error of a query. */
const isTerminated = (error) => error instanceof Terminated || error.cause instanceof Terminated

for (const [builder, open] of Object.entries(BUILDERS)) {
  for (const [kind, { address, name, sleep: sleeps }] of Object.entries(KINDS)) {
    const skip = address ? false : `NOT TESTED: ${kind}'s database is not there`

    async function stage (t) {
      const site = await daemon(t)
      const stopClient = new StopClient(site.path, { patience: PATIENCE })
      const { ask, close, transact } = open(kind, (of) => leased(of, stopClient, name))
      t.after(() => { stopClient.close(); return close() })
      const { ask: see, running } = await watch(t, kind)
      // A query of a builder begins when it is awaited, so await it as work for the request.
      const run = (request, work) => requests.run(controller.begin('search', Infinity, request), async () => await work())
      return { ask, run, running, see, site, stopClient, transact }
    }

    test(`${builder} with ${kind}: a stopped query is cancelled, and its connection can be reused`, { skip }, async (t) => {
      const { ask, run, running, site, stopClient } = await stage(t)
      await run('a1', () => ask('SELECT 1'))
      assert.equal(stopClient.stats().leased, 1)
      const ended = run('a2', () => ask(sleeps(60))).then(() => null, (error) => error)
      await until(async () => await running() === 1)
      assert.equal(await site.stop('a2'), '1 OK cancelled=1 spared=0')
      assert.ok(isTerminated(await ended))
      await until(async () => await running() === 0)
      await run('a3', () => ask('SELECT 1'))
      await assert.rejects(run('a2', () => ask(sleeps(60))), isTerminated)
      assert.equal(stopClient.stats().spoiled, 0)
    })

    test(`${builder} with ${kind}: the transaction of a stopped request is rolled back`, { skip }, async (t) => {
      const { ask, run, running, see, site, transact } = await stage(t)
      await see('DROP TABLE IF EXISTS built')
      await see('CREATE TABLE built (a INT)')
      const ended = run('b1', () => transact(async (ask) => {
        await ask(sleeps(60))
      })).then(() => null, (error) => error)
      await until(async () => await running() === 1)
      assert.equal(await site.stop('b1'), '1 OK cancelled=1 spared=0')
      assert.ok(isTerminated(await ended))
      // If the connection still were in that transaction, nobody else would see this row.
      await run('b2', () => ask('INSERT INTO built VALUES (2)'))
      assert.deepEqual(await see('SELECT a FROM built').then((rows) => rows.map(({ a }) => a)), [2])
      await see('DROP TABLE built')
    })
  }
}
