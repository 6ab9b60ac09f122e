'use strict'
// The cost of leasing: a query without a lease, with one, and with a daemon that is not there.
//
//     BYWASH=target/release/bywash scripts/with-databases postgres mariadb -- \
//         node sdk/node/databases/bench.js
//
// The packages of package.json must be installed, and NODE_PATH must name their folder. All sides
// run in turns in one process, each with a pool of one connection to a database on loopback. The
// program prints the median of the turns.

const { Controller, StopClient, leased } = require('..')
const { requests } = require('../lib/token')
const { KINDS, daemon } = require('./stage')

const TURNS = 15
const QUERIES = 400

const open = {
  pg: () => new (require('pg').Pool)({ connectionString: KINDS.pg.url, max: 1 }),
  mysql2: () => require('mysql2/promise').createPool({ uri: KINDS.mysql2.url, connectionLimit: 1 })
}

/** Returns the mean time of one query, in microseconds. */
async function turn (pool) {
  const start = performance.now()
  for (let i = 0; i < QUERIES; i++) await pool.query('SELECT 1')
  return (performance.now() - start) / QUERIES * 1000
}

const median = (of) => of.sort((a, b) => a - b)[of.length >> 1]

async function main () {
  const ends = []
  const site = await daemon({ after: (end) => ends.push(end) })
  const stopClients = [new StopClient(site.path), new StopClient('/nowhere/stopd.sock')]
  const token = new Controller({ search: { runMin: 600_000, runMax: 600_000 } }).begin('search', Infinity, 'r1')
  for (const [kind, { name }] of Object.entries(KINDS)) {
    const sides = [open[kind](), ...stopClients.map((stopClient) => leased(open[kind](), stopClient, name))]
    const rows = []
    await requests.run(token, async () => {
      for (let i = 0; i < TURNS; i++) rows.push([await turn(sides[0]), await turn(sides[1]), await turn(sides[2])])
    })
    for (const pool of sides) await pool.end()
    const [without, withIt, absent] = [0, 1, 2].map((side) => median(rows.map((row) => row[side])).toFixed(0))
    const [ratio, nothing] = [1, 2].map((side) => median(rows.map((row) => row[side] / row[0])).toFixed(2))
    console.log(`${kind}: ${without} us without, ${withIt} us leased (ratio ${ratio}), ` +
      `${absent} us without a daemon (ratio ${nothing})`)
  }
  for (const end of ends) await end()
}

main()
