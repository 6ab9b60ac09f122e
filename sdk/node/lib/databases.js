'use strict'
// Connections and pools whose queries are leased: pg and mysql2, with callbacks and with promises.
//
// They stay what they are, only their `query`, `execute` and `connect` are ours. A driver calls back in whatever
// context its socket or its pool is in, maybe another request's: whoever waits for something is called back in his own,
// or the next query would be leased for somebody else.
//
// One query at a time is leased on a connection; what follows waits for its turn, leased or not: it shall not run on a
// connection that something may still be aimed at. Transaction control is never leased, nor refused (unleased.js).

const { SettingError } = require('./classes')
const { Query, Taken } = require('./lease')
const { current, requests } = require('./token')
const { isControl, unleased } = require('./unleased')

const IS_LEASED = Symbol('bywash.leased')

/** This connection or pool, from now on with leased queries; `database` is its name in the daemon's configuration. */
function leased (of, sentry, database) {
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(database) || database === 'self') {
    throw new SettingError(`database is ${database}, not 1 to 32 letters, digits or any of _ -, and not self`)
  }
  // mysql2/promise has one of callbacks below.
  const core = of.pool?.getConnection ? of.pool : of.connection?.threadId !== undefined ? of.connection : of
  if (core[IS_LEASED]) return of
  const lease = makerOf(core)
  if (!lease) throw new SettingError('this is no connection or pool of pg or mysql2')
  core[IS_LEASED] = true
  lease(core, sentry, database)
  return of
}

/** By what it can do. */
function makerOf (core) {
  if (typeof core.getConnection === 'function') return poolOfMysql2
  if (typeof core.execute === 'function' && 'threadId' in core) return connectionOfMysql2
  if (typeof core.connect === 'function' && 'totalCount' in core) return poolOfPg
  if (typeof core.connect === 'function' && 'processID' in core) return clientOfPg
  return null
}

function clientOfPg (client, sentry, database) {
  const take = turns()
  const { query } = client
  const made = () => new Query(sentry, database, () => client.processID, () => { client.end().catch(() => {}) })
  client.query = function (...args) {
    const [first] = args
    // A cursor or a stream is what it was: it is not leased, but waits.
    if (typeof first?.submit === 'function') return submitted(take, first, () => query.apply(client, args))
    const callback = callbackOf(args) ?? ownCallbackOf(args)
    const run = () => query.apply(client, args)
    return isControl(first) ? controlCall(take, callback, run) : leasedCall(take, made(), callback, run)
  }
}

function poolOfPg (pool, sentry, database) {
  const { connect, query } = pool
  pool.on('connect', (client) => leased(client, sentry, database))
  emitUnleased(pool, 'connect')
  const { onConnect } = pool.options
  if (onConnect) pool.options.onConnect = (client) => unleased(() => onConnect(client))
  pool.connect = function (...args) {
    const callback = callbackOf(args)
    return callback ? connect.call(pool, callback) : connect.call(pool)
  }
  pool.query = function (...args) {
    if (typeof args[0]?.submit === 'function' || typeof args[0] === 'function') return query.apply(pool, args)
    const callback = callbackOf(args) ?? ownCallbackOf(args)
    return called(callback, again(() => query.apply(pool, args)))
  }
}

function connectionOfMysql2 (connection, sentry, database) {
  const take = turns()
  for (const name of ['query', 'execute']) {
    const run = connection[name]
    connection[name] = function (...args) {
      const callback = callbackOf(args)
      // Events and streams: what comes back is wanted at once.
      if (!callback) return run.apply(connection, args)
      const work = () => new Promise((resolve, reject) => {
        run.call(connection, ...args, (error, ...rest) => error ? reject(error) : resolve(new Results(rest)))
      })
      if (isControl(args[0])) return controlCall(take, callback, work)
      const query = new Query(sentry, database, () => connection.threadId, () => connection.destroy())
      leasedCall(take, query, callback, work)
    }
  }
}

function poolOfMysql2 (pool, sentry, database) {
  const { getConnection } = pool
  pool.on('connection', (connection) => leased(connection, sentry, database))
  emitUnleased(pool, 'connection')
  pool.getConnection = function (callback) {
    return getConnection.call(pool, inOwn(callback))
  }
  for (const name of ['query', 'execute']) {
    const run = pool[name]
    pool[name] = function (...args) {
      const callback = callbackOf(args)
      if (!callback) return run.apply(pool, args)
      called(callback, again(() => onLent(pool, name, args)))
    }
  }
}

/** A query on a connection that a pool of mysql2 lends, and gets back when it has been released. */
function onLent (pool, name, args) {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => {
      if (error) return reject(error)
      connection[name](...args, (error, ...rest) => {
        connection.release()
        if (error) reject(error)
        else resolve(new Results(rest))
      })
    })
  })
}

/** Whoever is leased waits for all before him, and all behind him for him; the others are the driver's business. */
function turns () {
  let last = null
  let lastLeased = null
  return ({ isLeased, run }) => {
    const before = isLeased ? last : lastLeased
    const turn = before === null ? run() : before.then(run)
    const done = Promise.resolve(turn).then(() => {}, () => {})
    const all = Promise.all([last, done]).then(() => {
      if (last === all) last = null
      if (lastLeased === all) lastLeased = null
    })
    last = all
    if (isLeased) lastLeased = all
    return turn
  }
}

/** Runs a query in its turn, and calls back if that is wanted. */
function leasedCall (take, query, callback, run) {
  const { isLeased } = query
  const work = isLeased ? () => query.run(run) : () => cancelled(query, run())
  return called(callback, take({ isLeased, run: work }))
}

/** The same for transaction control. */
function controlCall (take, callback, run) {
  return called(callback, take({ isLeased: false, run }))
}

/** A new connection is set up for all who will use it, whoever had to wait for it first. */
function emitUnleased (pool, name) {
  const { emit } = pool
  pool.emit = function (event, ...args) {
    const run = () => emit.call(this, event, ...args)
    return event === name ? unleased(run) : run()
  }
}

/** Of a query without a lease. */
function cancelled (query, running) {
  return running.catch(async (error) => { throw await query.over(error) })
}

function submitted (take, query, run) {
  // It runs when its turn has come, and what comes behind it waits in the driver.
  take({ isLeased: false, run })
  return query
}

/** A callback for whoever asks now. Node's `AsyncResource.bind` does more, and costs as much as a query. */
function inOwn (callback) {
  const token = current()
  return (...args) => requests.run(token, callback, ...args)
}

/** The callback among these arguments, taken out, in the context of whoever gave it. */
function callbackOf (args) {
  const place = args.findIndex((arg) => typeof arg === 'function')
  if (place < 0) return null
  const [callback] = args.splice(place)
  return inOwn(callback)
}

/** pg takes one in its configuration as well. */
function ownCallbackOf (args) {
  const callback = args[0]?.callback
  if (typeof callback !== 'function') return null
  args[0] = { ...args[0], callback: undefined }
  return inOwn(callback)
}

/** What a callback of mysql2 gets beside its error. */
class Results {
  constructor (all) {
    this.all = all
  }
}

/** The promise, or its outcome to the callback, from where an error that this throws is nobody's but the process's. */
function called (callback, promise) {
  if (!callback) return promise
  promise.then(
    (result) => process.nextTick(callback, null, ...(result instanceof Results ? result.all : [result])),
    (error) => process.nextTick(callback, error)
  )
}

/** With another connection if the first was another's too. */
async function again (run) {
  try {
    return await run()
  } catch (error) {
    if (error instanceof Taken) return run()
    throw error
  }
}

module.exports = { leased }
