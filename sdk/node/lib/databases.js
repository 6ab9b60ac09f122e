'use strict'
// Leases for connections and pools of pg and mysql2, with callbacks and with promises.
//
// The objects stay the same; only their `query`, `execute` and `connect` are replaced. A driver
// calls back in the context of its socket or its pool, which may belong to another request. So each
// callback is run in the context of its caller. Otherwise the caller's next query would be leased
// for another request.
//
// One query at a time is leased on a connection. Later queries wait for their turn, leased or not,
// because they must not run on a connection at which a cancellation may still be aimed. Transaction
// control is never leased and never refused (unleased.js).

const { SettingError } = require('./classes')
const { Query, Taken } = require('./lease')
const { requests } = require('./token')
const { isControl, unleased } = require('./unleased')

const IS_LEASED = Symbol('bywash.leased')

/**
 * Makes this connection or pool lease its queries from now on. `database` is its name in the
 * daemon's configuration.
 */
function leased (of, stopClient, database) {
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(database) || database === 'self') {
    throw new SettingError(`database is ${database}, and must be 1 to 32 letters, digits or any of _ -, and not self`)
  }
  // An object of mysql2/promise wraps one with callbacks.
  const core = of.pool?.getConnection ? of.pool : of.connection?.threadId !== undefined ? of.connection : of
  if (core[IS_LEASED]) return of
  const lease = makerOf(core)
  if (!lease) throw new SettingError('leased() takes a connection or pool of pg or mysql2')
  core[IS_LEASED] = true
  lease(core, stopClient, database)
  return of
}

/**
 * Returns the function that leases this kind of object. The object's methods and fields show its
 * kind.
 */
function makerOf (core) {
  if (typeof core.getConnection === 'function') return poolOfMysql2
  if (typeof core.execute === 'function' && 'threadId' in core) return connectionOfMysql2
  if (typeof core.connect === 'function' && 'totalCount' in core) return poolOfPg
  if (typeof core.connect === 'function' && 'processID' in core) return clientOfPg
  return null
}

function clientOfPg (client, stopClient, database) {
  const take = turns()
  const { query } = client
  const made = () => new Query(stopClient, database, () => client.processID, () => { client.end().catch(() => {}) })
  client.query = function (...args) {
    const [first] = args
    // A cursor or a stream is not wrapped: it is not leased, but waits for its turn.
    if (typeof first?.submit === 'function') return submitted(take, first, () => query.apply(client, args))
    const callback = callbackOf(args) ?? ownCallbackOf(args)
    const run = () => query.apply(client, args)
    return isControl(first) ? controlCall(take, callback, run) : leasedCall(take, made(), callback, run)
  }
}

function poolOfPg (pool, stopClient, database) {
  const { connect, query } = pool
  pool.on('connect', (client) => leased(client, stopClient, database))
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

function connectionOfMysql2 (connection, stopClient, database) {
  const take = turns()
  for (const name of ['query', 'execute']) {
    const run = connection[name]
    connection[name] = function (...args) {
      const callback = callbackOf(args)
      // Without a callback, mysql2 returns an object with events or a stream, which the caller
      // needs at once.
      if (!callback) return run.apply(connection, args)
      const work = () => new Promise((resolve, reject) => {
        run.call(connection, ...args, (error, ...rest) => error ? reject(error) : resolve(new Results(rest)))
      })
      const query = () => new Query(stopClient, database, () => connection.threadId, () => connection.destroy())
      if (isControl(args[0])) controlCall(take, callback, work)
      else leasedCall(take, query(), callback, work)
      // Sequelize calls this method of mysql2's emitter. There are no others, because the result
      // comes to the callback alone.
      return { setMaxListeners () {} }
    }
  }
}

function poolOfMysql2 (pool, stopClient, database) {
  const { getConnection } = pool
  pool.on('connection', (connection) => leased(connection, stopClient, database))
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

/**
 * Runs a query on a connection that a mysql2 pool lends, and returns the connection once the
 * query's lease was released.
 */
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

/**
 * Returns a queue of turns. A leased query waits for all queries before it, and all later queries
 * wait for it. The driver orders the other queries.
 */
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

/**
 * Runs a query, leased or not, in its turn. Calls back if there is a callback; otherwise returns a
 * promise.
 */
function leasedCall (take, query, callback, run) {
  const { isLeased } = query
  const work = isLeased ? () => query.run(run) : () => cancelled(query, run())
  return called(callback, take({ isLeased, run: work }))
}

/** Runs transaction control in its turn. */
function controlCall (take, callback, run) {
  return called(callback, take({ isLeased: false, run }))
}

/**
 * Emits an event outside of any request, because a new connection is set up for all requests that
 * will use it.
 */
function emitUnleased (pool, name) {
  const { emit } = pool
  pool.emit = function (event, ...args) {
    const run = () => emit.call(this, event, ...args)
    return event === name ? unleased(run) : run()
  }
}

/** Returns the error of a query that ran without a lease, as the caller should see it. */
function cancelled (query, running) {
  return running.catch(async (error) => { throw await query.over(error) })
}

function submitted (take, query, run) {
  // The query runs when its turn has come, and later ones wait in the driver.
  take({ isLeased: false, run })
  return query
}

/**
 * Binds a callback to the request of the caller. Node's `AsyncResource.bind` does more, and costs
 * as much as a query.
 */
function inOwn (callback) {
  const token = requests.getStore()
  return (...args) => requests.run(token, callback, ...args)
}

/** Removes the callback from these arguments and returns it, bound to the caller's request. */
function callbackOf (args) {
  const place = args.findIndex((arg) => typeof arg === 'function')
  if (place < 0) return null
  const [callback] = args.splice(place)
  return inOwn(callback)
}

/**
 * Returns the callback in the query's configuration object, which pg accepts instead of an
 * argument.
 */
function ownCallbackOf (args) {
  const callback = args[0]?.callback
  if (typeof callback !== 'function') return null
  args[0] = { ...args[0], callback: undefined }
  return inOwn(callback)
}

/** The arguments of a mysql2 callback that follow its error. */
class Results {
  constructor (all) {
    this.all = all
  }
}

/**
 * Returns the promise, or passes its result to the callback in a tick of its own, so that an error
 * that the callback throws is not caught here.
 */
function called (callback, promise) {
  if (!callback) return promise
  promise.then(
    (result) => process.nextTick(callback, null, ...(result instanceof Results ? result.all : [result])),
    (error) => process.nextTick(callback, error)
  )
}

/**
 * Runs `run`. Runs it once more, with another connection, if another client had leased the first
 * connection too.
 */
async function again (run) {
  try {
    return await run()
  } catch (error) {
    if (error instanceof Taken) return run()
    throw error
  }
}

module.exports = { leased }
