'use strict'
// The time from a client's close to the end of its query in the database, without a gateway.
//
//     BYWASH=target/release/bywash scripts/with-databases postgres mariadb -- \
//         node sdk/node/databases/departures.js
//
// The packages of package.json must be installed, and NODE_PATH must name their folder. The
// applications are the examples of README.md with Express. For each the program prints the median
// and the maximum of the turns, with the stop daemon, and without a daemon, where the driver is
// alone. It waits LONGEST milliseconds for the end of a query.

const { once } = require('node:events')
const http = require('node:http')
const { setTimeout: sleep } = require('node:timers/promises')
const { example } = require('../testing/readme')
const { EXAMPLES, KINDS, daemon, watch } = require('./stage')

const TURNS = 15
const LONGEST = 6000

/** Waits until `count` queries sleep. Resolves to the time, or to null if that takes too long. */
async function runs (running, count, longest) {
  const until = performance.now() + longest
  while (await running() !== count) {
    if (performance.now() > until) return null
    await sleep(1)
  }
  return performance.now()
}

/** Resolves to the milliseconds from a client's close to the end of its query, or to null. */
async function departure (port, kind, running) {
  const path = `/search?query=${encodeURIComponent(KINDS[kind].sleep(8))}`
  const asking = http.get({ port, host: '127.0.0.1', path }).on('error', () => {})
  if (await runs(running, 1, 60_000) === null) throw new Error('the query did not start')
  const closed = performance.now()
  asking.destroy()
  const ended = await runs(running, 0, LONGEST)
  await runs(running, 0, 60_000)
  return ended === null ? null : ended - closed
}

async function measure (required, path, turns) {
  const [kind, poolName] = EXAMPLES[required]
  Object.assign(process.env, { BYWASH_STOPD: path, DATABASE: KINDS[kind].url })
  const { app, stopClient, [poolName]: pool } = example(`require('${required}')`, ['app', 'stopClient', poolName])
  const server = http.createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const ends = []
  const { running } = await watch({ after: (end) => ends.push(end) }, kind)
  const times = []
  for (let turn = 0; turn < turns; turn++) times.push(await departure(server.address().port, kind, running))
  server.close()
  stopClient.close()
  await (pool.end ?? pool.destroy ?? pool.close).call(pool)
  for (const end of ends) await end()
  if (times.includes(null)) return `not within ${LONGEST / 1000} s`
  times.sort((a, b) => a - b)
  return `${times[turns >> 1].toFixed(1)} ms, at most ${times.at(-1).toFixed(1)} ms`
}

async function main () {
  const ends = []
  const site = await daemon({ after: (end) => ends.push(end) })
  for (const required of Object.keys(EXAMPLES)) {
    const leased = await measure(required, site.path, TURNS)
    // A query that runs on takes its whole time.
    const alone = await measure(required, '/nowhere/stopd.sock', 1)
    console.log(`${required}: ${leased}; without a daemon ${alone}`)
  }
  for (const end of ends) await end()
}

main()
