'use strict'
// Tests of query builders and mappers (knex, Drizzle, Sequelize, TypeORM, Prisma) with the real daemon
// and a real database.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { Controller, StopClient, Terminated, leased, unleased } = require('..')
const { requests } = require('../lib/token')
const { KINDS, PATIENCE, daemon, skipped, until, watch } = require('./stage')

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
  },
  Sequelize: (kind, lease) => {
    const { Sequelize } = require('sequelize')
    const sequelize = new Sequelize(KINDS[kind].url, { logging: false, pool: { max: 1 } })
    sequelize.addHook('afterConnect', (connection) => { lease(connection) })
    return {
      ask: (sql) => sequelize.query(sql),
      transact: (work) => sequelize.transaction((transaction) => work((sql) => sequelize.query(sql, { transaction }))),
      close: () => sequelize.close()
    }
  },
  TypeORM: async (kind, lease) => {
    const { DataSource } = require('typeorm')
    const driver = require(kind === 'pg' ? 'pg' : 'mysql2')
    const Pool = function (options) { return lease(new driver.Pool(options)) }
    const createPool = (options) => lease(driver.createPool(options))
    const source = new DataSource({
      type: kind === 'pg' ? 'postgres' : 'mysql',
      url: KINDS[kind].url,
      driver: kind === 'pg' ? { ...driver, Pool } : { ...driver, createPool },
      poolSize: 1
    })
    await unleased(() => source.initialize())
    return {
      ask: (sql) => source.query(sql),
      transact: (work) => source.transaction((manager) => work((sql) => manager.query(sql))),
      close: () => source.destroy()
    }
  },
  Prisma: (kind, lease) => {
    const { PrismaPg } = require('@prisma/adapter-pg')
    const { PrismaClient } = require('@prisma/client')
    const pool = lease(new (require('pg').Pool)({ connectionString: KINDS.pg.url, max: 1 }))
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
    return {
      ask: (sql) => prisma.$queryRawUnsafe(sql),
      transact: (work) => prisma.$transaction((transaction) => work((sql) => transaction.$queryRawUnsafe(sql))),
      close: () => prisma.$disconnect().then(() => pool.end()),
      prisma
    }
  }
}

/** The packages that need a newer Node than the others, by builder. */
const PACKAGES = { Prisma: '@prisma/client', TypeORM: 'typeorm' }

/** Most of them wrap the error of a query. */
const isTerminated = (error) =>
  [error, error.cause, error.original, error.driverError].some((each) => each instanceof Terminated)

for (const [builder, open] of Object.entries(BUILDERS)) {
  for (const [kind, { name, sleep: sleeps }] of Object.entries(KINDS)) {
    if (builder === 'Prisma' && kind === 'mysql2') continue // Its adapter uses another driver.
    const skip = skipped(kind, PACKAGES[builder])

    async function stage (t) {
      const site = await daemon(t)
      const stopClient = new StopClient(site.path, { patience: PATIENCE })
      const { ask, close, prisma, transact } = await open(kind, (of) => leased(of, stopClient, name))
      t.after(() => { stopClient.close(); return close() })
      const { ask: see, running } = await watch(t, kind)
      // A query of a builder begins when it is awaited, so await it as work for the request.
      const run = (request, work) => requests.run(controller.begin('search', Infinity, request), async () => await work())
      return { ask, prisma, run, running, see, site, stopClient, transact }
    }

    test(`${builder} with ${kind}: a stopped query is cancelled, and its connection can be reused`, { skip }, async (t) => {
      const { ask, run, running, site, stopClient } = await stage(t)
      await run('a1', () => ask('SELECT 1'))
      const { leased: count, unnamed } = stopClient.stats()
      assert.equal(unnamed, 0)
      // The mappers lease the statements by which they set up a connection as well.
      assert.ok(['knex', 'Drizzle'].includes(builder) ? count === 1 : count > 0, count)
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

    if (builder !== 'Prisma') continue

    /**
     * Lets two requests find a row by a method at once, the first of which is stopped. Resolves to
     * their results, where true stands for `Terminated`.
     */
    async function findTwo (t, method) {
      const { prisma, run, see, site } = await stage(t)
      await see('DROP TABLE IF EXISTS carts')
      await see('CREATE TABLE carts (a INT PRIMARY KEY)')
      await see('INSERT INTO carts VALUES (1), (2)')
      await site.stop('c1')
      const found = await Promise.allSettled(['c1', 'c2'].map((request, i) =>
        run(request, () => prisma.carts[method]({ where: { a: i + 1 } }))))
      await see('DROP TABLE carts')
      return found.map(({ reason, value }) => value ?? isTerminated(reason))
    }

    for (const method of ['findFirst', 'findFirstOrThrow']) {
      test(`Prisma with pg: of two requests with ${method} only the stopped one is hit`, { skip }, async (t) => {
        assert.deepEqual(await findTwo(t, method), [true, { a: 2 }])
      })
    }
    for (const method of ['findUnique', 'findUniqueOrThrow']) {
      test(`Prisma with pg: ${method} joins two requests, and the other one is hit too`, { skip }, async (t) => {
        assert.deepEqual(await findTwo(t, method), [true, true])
      })
    }
  }
}
