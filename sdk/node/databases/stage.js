'use strict'
// The common part of these tests: the real daemon, and the real databases of
// scripts/with-databases.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { mkdtempSync, readFileSync, rmSync, writeFileSync, openSync, closeSync } = require('node:fs')
const { connect, createServer } = require('node:net')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')

// Milliseconds: longer than anything takes on a busy machine.
const PATIENCE = 60_000

const POSTGRES = process.env.BYWASH_POSTGRES
const MARIADB = process.env.BYWASH_MARIADB
const PROGRAM = process.env.BYWASH ?? 'target/debug/bywash'

/** The name in the daemon's configuration, the address, and the query that sleeps, by kind. */
const KINDS = {
  pg: {
    name: 'shop',
    address: POSTGRES,
    url: `postgres://shop:lab@${POSTGRES}/shop`,
    // Prisma cannot read the type of pg_sleep, void.
    sleep: (seconds) => `SELECT pg_sleep(${seconds})::text`
  },
  mysql2: {
    name: 'store',
    address: MARIADB,
    url: `mysql://shop:lab@${MARIADB}/shop`,
    sleep: (seconds) => `SELECT SLEEP(${seconds})`
  }
}

/**
 * The examples of README.md with Express, by the package that they require: the kind of database, and
 * the name of the pool.
 */
const EXAMPLES = {
  pg: ['pg', 'pool'],
  'mysql2/promise': ['mysql2', 'pool'],
  knex: ['pg', 'knex'],
  'drizzle-orm': ['pg', 'pool'],
  sequelize: ['pg', 'sequelize'],
  typeorm: ['pg', 'source'],
  '@prisma/client': ['pg', 'pool']
}

/**
 * Returns the reason to skip the tests of this kind of database with this package, or false. The
 * package may be undefined.
 */
function skipped (kind, name) {
  if (!KINDS[kind].address) return `NOT TESTED: ${kind}'s database is not there`
  const needsNewer = /^(@prisma\/client|typeorm)$/.test(name) && Number(process.versions.node.split('.')[0]) < 20
  return needsNewer && `NOT TESTED: ${name} needs node 20 or later`
}

async function freePort () {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

async function until (holds, what = () => 'it did not come about') {
  for (let turn = 0; turn < PATIENCE / 5; turn++) {
    if (await holds()) return
    await sleep(5)
  }
  assert.fail(what())
}

/**
 * Resolves to the answer to a line of the daemon at the socket `path`. Rejects if there is no
 * daemon or no answer.
 */
async function say (path, line) {
  const stream = connect(path)
  stream.write(`${line}\n`)
  for await (const text of stream.setEncoding('utf8')) return text.trim()
}

/** Starts a daemon for one test. `addresses` replaces the addresses of databases, by kind. */
async function daemon (t, addresses = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'bywash-'))
  const path = join(folder, 'stopd.sock')
  const password = join(folder, 'password')
  writeFileSync(password, 'lab\n', { mode: 0o600 })
  const admin = `127.0.0.1:${await freePort()}`
  const tables = ['version = 1', `[stopd]\nsocket = "${path}"\nmode = "enforce"\nadmin = "${admin}"`]
  for (const [kind, { name, address }] of Object.entries(KINDS)) {
    const server = `${kind === 'pg' ? 'postgres' : 'mysql'}://stopd@${addresses[kind] ?? address}/shop`
    const table = `[database.${name}]\nserver = "${server}"\npassword_file = "${password}"`
    if (address) tables.push(`${table}\nstatements_per_second = 10000`)
  }
  writeFileSync(join(folder, 'bywash.toml'), tables.join('\n\n'))
  const self = { path }
  self.start = async () => {
    const log = openSync(join(folder, 'log'), 'a')
    self.process = spawn(PROGRAM, ['stopd', '--config', join(folder, 'bywash.toml')], { stdio: ['ignore', log, log] })
    closeSync(log)
    const read = () => readFileSync(join(folder, 'log'), 'utf8')
    await until(() => say(path, '1 STOP nobody client_left').then(() => true, () => false), read)
  }
  self.kill = async () => {
    if (self.process.exitCode === null && self.process.signalCode === null) {
      self.process.kill('SIGKILL')
      await once(self.process, 'exit')
    }
  }
  /** Sends STOP as a gateway does, and resolves to the daemon's answer. */
  self.stop = (request, reason = 'client_left') => say(path, `1 STOP ${request} ${reason}`)
  t.after(async () => { await self.kill(); rmSync(folder, { recursive: true }) })
  await self.start()
  return self
}

/** Observes a database: `running` counts the queries of the application that sleep in the database. */
async function watch (t, kind) {
  if (kind === 'pg') {
    const client = new (require('pg').Client)({ connectionString: KINDS.pg.url })
    await client.connect()
    t.after(() => client.end())
    const query = 'SELECT count(*)::int AS n FROM pg_stat_activity ' +
      "WHERE usename = 'shop' AND wait_event = 'PgSleep' AND pid <> pg_backend_pid()"
    const ask = async (sql) => (await client.query(sql)).rows
    return { ask, running: async () => (await ask(query))[0].n }
  }
  const client = await require('mysql2/promise').createConnection(KINDS.mysql2.url)
  t.after(() => client.end())
  const query = 'SELECT count(*) AS n FROM information_schema.processlist ' +
    "WHERE user = 'shop' AND state = 'User sleep' AND id <> connection_id()"
  const ask = async (sql) => (await client.query(sql))[0]
  return { ask, running: async () => Number((await ask(query))[0].n) }
}

module.exports = { EXAMPLES, KINDS, PATIENCE, daemon, skipped, until, watch }
