'use strict'
// Tests that the example of README.md does what it says.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { test } = require('node:test')
const { example } = require('../testing/readme')

test('the example runs', async (t) => {
  const { server, controller } = example("require('node:http')", ['server', 'controller'])
  await once(server, 'listening')
  t.after(() => { server.closeAllConnections(); server.close() })
  const url = `http://127.0.0.1:${server.address().port}/search`
  const response = await fetch(url)
  assert.deepEqual([response.status, await response.text()], [200, '500'])
  assert.equal((await fetch(url, { headers: { 'bywash-deadline': '0' } })).status, 504)
  assert.equal(controller.stats().search.deferred, 1)
})
