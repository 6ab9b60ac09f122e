'use strict'
// Tests that a transaction ends if its request is over, so that the connection's next user does not
// work within it.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { Controller, StopClient, Terminated, leased, unleased } = require('..')
const { requests } = require('../lib/token')
const { KINDS, PATIENCE, daemon } = require('./stage')

const controller = new Controller({ search: { runMin: 600_000, runMax: 600_000 } })

/**
 * The ways to use a pool of one connection, by driver: the pool, a connection that it lends, and
 * the rows of a query on that connection.
 */
const DRIVERS = {
  pg: {
    open: (url) => new (require('pg').Pool)({ connectionString: url, max: 1 }),
    lend: (pool) => pool.connect(),
    rows: async (client, sql) => (await client.query(sql)).rows,
    transaction: { begin: (client) => client.query('BEGIN'), rollback: (client) => client.query({ text: 'ROLLBACK' }) }
  },
  mysql2: {
    open: (url) => require('mysql2/promise').createPool({ uri: url, connectionLimit: 1 }),
    lend: (pool) => pool.getConnection(),
    rows: async (connection, sql) => (await connection.query(sql))[0],
    transaction: {
      begin: (connection) => connection.beginTransaction(),
      rollback: (connection) => connection.rollback()
    }
  }
}

for (const [kind, { open, lend, rows, transaction }] of Object.entries(DRIVERS)) {
  const { address, name, url } = KINDS[kind]
  const skip = address ? false : `NOT TESTED: ${kind}'s database is not there`

  async function stage (t) {
    const site = await daemon(t)
    const stopClient = new StopClient(site.path, { patience: PATIENCE })
    const pool = leased(open(url), stopClient, name)
    t.after(() => { stopClient.close(); return pool.end() })
    return { pool, stopClient, token: controller.begin('search', Infinity, 'x1') }
  }

  test(`${kind}: a request that is over rolls back, and the next is in no transaction of its`, { skip }, async (t) => {
    const { pool, token } = await stage(t)
    await pool.query('DROP TABLE IF EXISTS carts')
    await pool.query('CREATE TABLE carts (a INT)')
    await requests.run(token, async () => {
      const connection = await lend(pool)
      try {
        await transaction.begin(connection)
        await connection.query('INSERT INTO carts VALUES (1)')
        token.leave()
        await assert.rejects(connection.query('SELECT 1'), Terminated)
        await unleased(() => connection.query('SELECT 1'))
        await transaction.rollback(connection)
      } finally {
        connection.release()
      }
    })
    const connection = await lend(pool)
    assert.deepEqual(await rows(connection, 'SELECT a FROM carts'), [])
    connection.release()
    await pool.query('DROP TABLE carts')
  })

  test(`${kind}: a new connection is set up, although who waits for it is over`, { skip }, async (t) => {
    const { pool, stopClient, token } = await stage(t)
    const set = new Promise((resolve, reject) => {
      if (kind === 'pg') pool.on('connect', (client) => client.query('SET search_path = public').then(resolve, reject))
      else pool.on('connection', (one) => one.query('SET @a = 1', (error) => error ? reject(error) : resolve()))
    })
    // Connect to the daemon first: a request that is over is refused only if there is a daemon.
    stopClient.conversation()
    token.leave()
    await requests.run(token, () => assert.rejects(pool.query('SELECT 1'), Terminated))
    await set
  })
}
