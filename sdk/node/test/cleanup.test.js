'use strict'
// Tests that transaction control is neither leased nor refused, and runs in its turn. The tests
// have fake drivers. conformance.test.js tests which texts are transaction control.

const assert = require('node:assert/strict')
const { EventEmitter } = require('node:events')
const { test } = require('node:test')
const { Terminated, current, leased, unleased } = require('..')
const { requests } = require('../lib/token')
const { isControl } = require('../lib/unleased')
const { stage } = require('../testing/stop-client')
const { until } = require('../testing/server')

const LEASE = 'LEASE r1 shop 4711'
const RELEASE = 'RELEASE r1 shop 4711'

/** A fake client like pg's. */
class Client {
  processID = 4711
  ran = []
  connect () {}
  async end () {}
  async query (query) {
    const text = query.text ?? query
    this.ran.push(text)
    await this.waits?.(text)
    return text
  }
}

class Pool extends EventEmitter {
  totalCount = 0
  constructor (options = {}) {
    super()
    this.options = options
  }

  /**
   * Connects, and emits the event in the context of the first caller, as a pool does when it makes
   * a connection.
   */
  async connect () {
    const client = new Client()
    await this.options.onConnect?.(client)
    this.emit('connect', client)
    return client
  }

  query () {}
}

/** A fake connection like mysql2's. */
class Connection {
  threadId = 4711
  ran = []
  destroy () {}
  execute (query, done) { this.query(query, done) }
  query (query, done) {
    this.ran.push(query.sql ?? query)
    setImmediate(done, null, [])
  }

  beginTransaction (done) { this.query('START TRANSACTION', done) }
  commit (done) { this.query('COMMIT', done) }
  rollback (done) { this.query('ROLLBACK', done) }
}

test('what is no text is not control, and long comments are read once', () => {
  for (const query of [null, 7, undefined, {}, { text: 7 }]) assert.equal(isControl(query), false, JSON.stringify(query))
  assert.equal(isControl('/* a */ -- b\n'.repeat(10_000) + 'SELECT 1'), false)
})

test('pg rolls back and commits although a request is over, and nothing is said', async (t) => {
  const { daemon, stopClient, token } = await stage(t)
  const client = leased(new Client(), stopClient, 'shop')
  await requests.run(token, async () => {
    await client.query('BEGIN')
    assert.deepEqual(daemon.lines(), [])
    await client.query('UPDATE a')
    token.leave()
    for (const line of [LEASE, RELEASE, 'STOP r1 client_left scope=own']) assert.equal(await daemon.next(), line)
    await assert.rejects(client.query('SELECT 1'), Terminated)
    assert.equal(await client.query('ROLLBACK TO SAVEPOINT a'), 'ROLLBACK TO SAVEPOINT a')
    assert.equal(await client.query({ text: 'COMMIT' }), 'COMMIT')
    assert.equal(await new Promise((resolve, reject) => client.query('rollback', (error, result) =>
      error ? reject(error) : resolve(result))), 'rollback')
    assert.equal(await unleased(() => client.query('SELECT pg_advisory_unlock(1)')), 'SELECT pg_advisory_unlock(1)')
  })
  assert.deepEqual([client.ran.length, daemon.lines()], [6, []])
})

test('mysql2 rolls back and commits although a request is over, and nothing is said', async (t) => {
  const { daemon, stopClient, token } = await stage(t)
  const connection = leased(new Connection(), stopClient, 'store')
  token.leave()
  const ask = (name, ...args) => requests.run(token, () => new Promise((resolve, reject) =>
    connection[name](...args, (error) => error ? reject(error) : resolve())))
  for (const name of ['beginTransaction', 'commit', 'rollback']) await ask(name)
  for (const name of ['query', 'execute']) {
    await ask(name, 'SAVEPOINT a')
    await ask(name, { sql: 'ROLLBACK TO SAVEPOINT a' })
    await requests.run(token, () => assert.rejects(ask(name, 'SELECT 1'), Terminated))
  }
  assert.deepEqual([connection.ran.length, daemon.lines()], [7, []])
})

test('it waits for the release of what runs on its connection', async (t) => {
  const { daemon, stopClient, token } = await stage(t)
  const client = leased(new Client(), stopClient, 'shop')
  let end
  client.waits = (text) => text === 'SELECT 1' && new Promise((resolve) => { end = resolve })
  const selected = requests.run(token, () => client.query('SELECT 1'))
  const rolledBack = client.query('ROLLBACK')
  const leasedAgain = requests.run(token, () => client.query('SELECT 2'))
  await until(() => end)
  assert.deepEqual([client.ran, daemon.lines()], [['SELECT 1'], [LEASE]])
  end()
  await Promise.all([selected, rolledBack, leasedAgain])
  assert.deepEqual(client.ran, ['SELECT 1', 'ROLLBACK', 'SELECT 2'])
  assert.deepEqual(daemon.lines(), [RELEASE, LEASE, RELEASE])
})

test('a connection is set up for no request, whoever waits for it', async (t) => {
  const { daemon, stopClient, token } = await stage(t)
  const seen = []
  const pool = leased(new Pool({ onConnect: () => seen.push(current()) }), stopClient, 'shop')
  pool.on('connect', (client) => {
    seen.push(current())
    client.query('SET search_path = a')
  })
  pool.on('remove', () => seen.push(current()))
  token.leave()
  await requests.run(token, async () => {
    const client = await pool.connect()
    pool.emit('remove', client)
    await assert.rejects(client.query('SELECT 1'), Terminated)
    assert.deepEqual(client.ran, ['SET search_path = a'])
  })
  assert.deepEqual([seen, daemon.lines()], [[undefined, undefined, token], []])
})

test('a connection of mysql2 is set up for no request as well', async (t) => {
  const { stopClient, token } = await stage(t)
  const pool = Object.assign(new EventEmitter(), { getConnection () {}, query () {}, execute () {} })
  const seen = []
  leased(pool, stopClient, 'store').on('connection', () => seen.push(current()))
  requests.run(token, () => pool.emit('connection', new Connection()))
  assert.deepEqual(seen, [undefined])
})
