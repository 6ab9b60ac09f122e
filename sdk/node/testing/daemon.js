'use strict'
// A fake stop daemon. The tests with databases (scripts/test-sdk-databases) use the real one.

const { once } = require('node:events')
const { mkdtempSync, rmSync } = require('node:fs')
const { createServer } = require('node:net')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const readline = require('node:readline')

function newPath (t) {
  const folder = mkdtempSync(join(tmpdir(), 'bywash-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'stopd.sock')
}

/**
 * Starts a fake daemon. `answer` is a function from the words of a line to those of the answer, or
 * to null for no answer.
 */
async function daemon (t, path = newPath(t)) {
  const lines = []
  const waiting = []
  const clients = []
  const self = {
    path,
    clients,
    answer: (words) => words.startsWith('STOP ') ? 'OK cancelled=0 spared=0' : 'OK',
    /** Returns the text to send as the answer to a line; null for no answer. */
    reply (number, words) {
      const answer = self.answer(words)
      return answer === null ? null : `${number} ${answer}`
    }
  }
  const server = createServer((client) => {
    clients.push(client)
    client.on('error', () => {})
    readline.createInterface({ input: client }).on('line', (line) => {
      const [, number, words] = /^(\d+) (.*)$/.exec(line)
      const next = waiting.shift()
      if (next) next(words)
      else lines.push(words)
      const text = self.reply(number, words)
      if (text !== null) client.write(`${text}\n`)
    })
  })
  server.listen(path)
  await once(server, 'listening')
  self.lines = () => lines.splice(0)
  self.next = () => lines.length > 0 ? Promise.resolve(lines.shift()) : new Promise((resolve) => waiting.push(resolve))
  self.say = (text) => clients.at(-1).write(text)
  self.die = () => {
    for (const client of clients) client.destroy()
    return new Promise((resolve) => server.close(resolve))
  }
  t.after(self.die)
  return self
}

module.exports = { daemon }
