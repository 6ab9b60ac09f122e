'use strict'
// Tests that the example of README.md does what it says.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('node:test')

test('the example runs', async (t) => {
  const text = readFileSync(join(__dirname, '../README.md'), 'utf8')
  const [, example] = text.match(/```js\n(.*?)```/s)
  const load = (name) => require(name === 'bywash' ? '..' : name)
  const { server, controller } = new Function('require', `${example}\nreturn { server, controller }`)(load)
  await once(server, 'listening')
  t.after(() => { server.closeAllConnections(); server.close() })
  const url = `http://127.0.0.1:${server.address().port}/search`
  const response = await fetch(url)
  assert.deepEqual([response.status, await response.text()], [200, '500'])
  assert.equal((await fetch(url, { headers: { 'bywash-deadline': '0' } })).status, 504)
  assert.equal(controller.stats().search.deferred, 1)
})
