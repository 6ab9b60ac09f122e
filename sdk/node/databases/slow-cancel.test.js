'use strict'
// Tests that a stopped query fails with `Terminated` although the daemon does not yet know whether
// its cancellation is over.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { connect, createServer } = require('node:net')
const { test } = require('node:test')
const { Controller, StopClient, Terminated, leased } = require('..')
const { requests } = require('../lib/token')
const { KINDS, PATIENCE, daemon, until, watch } = require('./stage')

const { address, name, sleep: sleeps, url } = KINDS.mysql2
const skip = address ? false : 'NOT TESTED: the database of mysql2 is not there'

/**
 * Starts a proxy of the database. It passes a KILL on and holds the database's answer back, for as
 * long as the proxy lives. Resolves to its address.
 */
async function slowToKill (t) {
  const [host, port] = address.split(':')
  const sockets = new Set()
  const server = createServer((client) => {
    const database = connect(port, host)
    let isHeld = false
    client.on('data', (text) => {
      isHeld ||= text.includes('KILL')
      database.write(text)
    })
    database.on('data', (text) => isHeld || client.write(text))
    for (const [one, other] of [[client, database], [database, client]]) {
      sockets.add(one)
      one.on('error', () => {}).on('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `127.0.0.1:${server.address().port}`
}

test('a stopped query whose cancellation takes long fails with Terminated', { skip }, async (t) => {
  const site = await daemon(t, { mysql2: await slowToKill(t) })
  const stopClient = new StopClient(site.path, { patience: PATIENCE })
  const pool = leased(require('mysql2/promise').createPool({ uri: url, connectionLimit: 1 }), stopClient, name)
  t.after(() => { stopClient.close(); return pool.end() })
  const { ask, running } = await watch(t, 'mysql2')
  // The daemon reads the uptime in whole seconds, and drops leases that look older than the database.
  await until(async () => Number((await ask("SHOW GLOBAL STATUS LIKE 'Uptime'"))[0].Value) > 1)
  const controller = new Controller({ search: { runMin: 600_000, runMax: 600_000 } })
  const token = controller.begin('search', Infinity, 'k1')
  const ended = requests.run(token, () => pool.query(sleeps(60))).then(() => null, (error) => error)
  await until(async () => await running() === 1)
  // The daemon answers once the cancellation is over.
  site.stop('k1', 'deadline').catch(() => {})
  const error = await ended
  assert.ok(error instanceof Terminated && error.reason === 'deadline', error)
  assert.equal(error.cause.errno, 1317)
  assert.equal(stopClient.stats().spoiled, 1, 'the daemon refused the release')
  await requests.run(controller.begin('search', Infinity, 'k2'), () => pool.query('SELECT 1'))
})
