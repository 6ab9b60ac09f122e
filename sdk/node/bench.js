'use strict'
// The cost of the middleware: a request without and with it, and a checkpoint.
//
//     node sdk/node/bench.js
//
// Both sides run in turns in one process, each over one connection to Node's server on loopback. So
// the ratio holds on another machine, although the times do not. The program prints the median of
// the turns.

const { once } = require('node:events')
const http = require('node:http')
const { connect } = require('node:net')
const { Controller, terminable } = require('.')

const TURNS = 15
const REQUESTS = 4000
const CHECKPOINTS = 1_000_000

async function serve (handler) {
  const server = http.createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stream = connect(server.address().port, '127.0.0.1')
  await once(stream, 'connect')
  return { server, stream }
}

/** Returns the mean time of one request, in microseconds. */
async function turn (stream) {
  const start = performance.now()
  for (let i = 0; i < REQUESTS; i++) {
    stream.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    await new Promise((resolve) => stream.once('data', resolve))
  }
  return (performance.now() - start) / REQUESTS * 1000
}

const median = (of) => of.sort((a, b) => a - b)[of.length >> 1]

async function main () {
  const controller = new Controller({ search: { runMin: 1000, runMax: 30_000 } })
  const plain = (req, res) => { res.end('done') }
  const sides = [await serve(plain), await serve(terminable(controller, 'search', plain))]
  const pairs = []
  for (let i = 0; i < TURNS; i++) pairs.push([await turn(sides[0].stream), await turn(sides[1].stream)])
  for (const { server, stream } of sides) {
    stream.destroy()
    server.close()
  }
  const [without, withIt, ratio] = [([a]) => a, ([, b]) => b, ([a, b]) => b / a].map((of) => median(pairs.map(of)))
  console.log(`request: ${without.toFixed(1)} us without, ${withIt.toFixed(1)} us with, ratio ${ratio.toFixed(2)}`)

  const token = controller.begin('search')
  const times = []
  for (let i = 0; i < TURNS; i++) {
    const start = performance.now()
    for (let j = 0; j < CHECKPOINTS; j++) token.checkpoint()
    times.push((performance.now() - start) / CHECKPOINTS * 1e6)
  }
  console.log(`checkpoint: ${median(times).toFixed(0)} ns`)
}

main()
