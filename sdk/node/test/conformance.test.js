'use strict'
// Tests that run the vectors of sdk/conformance.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { Controller, Query, StopClient, Taken, Terminated, answerTerminated, checkpoint, current, leased, middleware, outgoing, terminable } =
  require('..')
const { requests } = require('../lib/token')
const { isControl } = require('../lib/unleased')
const { isMade, microClock, vectors } = require('../testing/conformance')
const { daemon } = require('../testing/daemon')
const { listen, raw, row, until } = require('../testing/server')
const { Steps, isAbout } = require('../testing/steps')
const { cancelled } = require('../testing/stop-client')

const STYLES = {
  plain: (controller, handle, options) => terminable(controller, 'search', handle, options),
  connect: (controller, handle, options) =>
    row(middleware(controller, 'search', options), (req, res, next) => handle(req, res), answerTerminated)
}

/** Runs each vector in each style, on a server with a class whose threshold is `runMax`. */
function inEachStyle (name, file, key, runMax, run) {
  for (const [style, app] of Object.entries(STYLES)) {
    test(`${style}: ${name}`, async (t) => {
      // No HTTP client can send the others.
      for (const vector of vectors(file, key).filter((vector) => !vector.in_memory)) {
        await t.test(vector.why, async (t) => {
          const clock = microClock()
          const settings = { runMin: 1000, runMax, retryAfter: vector.retry_after_ms }
          const controller = new Controller({ search: settings }, { clock })
          const options = { trustRequest: vector.trusts_names ?? true, trustDeadline: vector.trusts_deadlines ?? true }
          /** Sends a request to a server with this handler. */
          const ask = async (handle, fields, method = 'GET') => {
            const { port } = await listen(t, app(controller, handle, options))
            const head = [['host', 'a'], ['connection', 'close'], ...fields].map(([field, value]) => `${field}: ${value}\r\n`)
            return parsed(await raw(port, `${method} / HTTP/1.1\r\n${head.join('')}\r\n`))
          }
          await run(vector, { ask, clock, stats: () => controller.stats().search })
        })
      }
    })
  }
}

function parsed (text) {
  const [head, body] = text.split(/\r\n\r\n(.*)/s)
  const [line, ...lines] = head.split('\r\n')
  const fields = Object.fromEntries(lines.map((line) => line.split(/: (.*)/)).map(([field, value]) => [field.toLowerCase(), value]))
  return { line, status: Number(line.split(' ')[1]), fields, body }
}

const made = new Set()

inEachStyle('names', 'names.json', 'requests', 9000, async ({ values, name }, { ask }) => {
  const { body } = await ask((req, res) => res.end(current().request), values.map((value) => ['bywash-request', value]))
  if (name !== null) return assert.equal(body, name)
  assert.ok(isMade(body) && !made.has(body), body)
  made.add(body)
})

test('names of databases', () => {
  // The name is checked before the connection, which is none.
  for (const { why, name, is_valid: isValid } of vectors('names.json', 'databases')) {
    assert.throws(() => leased({}, null, name), isValid ? /takes a connection or pool/ : /database is/, why)
  }
})

inEachStyle('deadlines', 'deadlines.json', 'requests', 3_600_000, async ({ values, left_ms: expected }, { ask, stats }) => {
  const left = []
  const handle = (req, res) => {
    left.push(req.bywash.left())
    res.end()
  }
  const { status } = await ask(handle, values.map((value) => ['bywash-deadline', value]))
  if (expected === 0) {
    assert.deepEqual([status, left, stats().deadline, stats().lost], [504, [], 1, 0], 'it does not begin')
  } else {
    isAbout(left[0], expected)
    assert.deepEqual([status, stats().deadline, stats().lost], [200, 0, 0])
  }
})

inEachStyle('outgoing', 'outgoing.json', 'requests', 9000, async (vector, { ask, clock }) => {
  const seen = []
  await ask((req, res) => {
    clock.go(vector.after_ms ?? 0)
    if (vector.settles) req.bywash.settle()
    seen.push(outgoing())
    res.end()
  }, vector.fields)
  const [fields] = seen
  const expected = { ...vector.outgoing }
  if (expected['bywash-request'] === null) {
    assert.ok(isMade(fields['bywash-request']), fields['bywash-request'])
    expected['bywash-request'] = fields['bywash-request']
  }
  // Node joins several values with a comma and a blank.
  if ('tracestate' in fields) fields.tracestate = fields.tracestate.replaceAll(', ', ',')
  assert.deepEqual(fields, expected)
})

inEachStyle('answers', 'answers.json', 'answers', 9000, async (vector, { ask, clock }) => {
  const fields = vector.accept.map((value) => ['accept', value])
  if (vector.reason === 'deadline') fields.push(['bywash-deadline', '0'])
  const handle = (req) => {
    if (vector.reason === 'client_left') req.bywash.leave()
    clock.go(9000)
    checkpoint()
  }
  const { body } = await ask(handle, fields)
  const answer = await ask(handle, fields, vector.method)
  for (const own of ['date', 'connection']) delete answer.fields[own]
  assert.deepEqual([answer.status, answer.fields], [vector.status, { ...vector.fields, 'content-length': String(body.length) }])
  assert.equal(answer.line, 'HTTP/1.1 504 Gateway Timeout')
  assert.equal(answer.body, vector.method === 'HEAD' ? '' : body)
  if (vector.problem) assert.deepEqual(JSON.parse(body), vector.problem)
  else assert.equal(body, vector.text)
})

test('statements', () => {
  for (const { why, text, is_control: expected } of vectors('statements.json', 'statements')) {
    for (const query of [text, { text }, { sql: text }]) assert.equal(isControl(query), expected, `${JSON.stringify(query)}: ${why}`)
  }
})

test('sequences', async (t) => {
  for (const { why, steps } of vectors('controller.json', 'sequences')) await t.test(why, () => new Steps().run(steps))
})

/** The steps of a transcript. */
class Transcript extends Steps {
  queries = {}
  ends = new Set()
  heard = []
  checked = 0
  /** A step before the daemon answers the next lease. */
  #meanwhile = null
  #answers

  static async begun (t, { answers = {}, daemon: isThere = true }) {
    const self = new Transcript()
    self.#answers = { ...answers }
    const said = await daemon(t)
    said.reply = (number, words) => {
      self.heard.push(words)
      const [verb, request] = words.split(' ')
      if (verb === 'LEASE' && self.#meanwhile !== null) {
        const [name, ...args] = self.#meanwhile
        self.#meanwhile = null
        self[name](...args)
      }
      const answers = self.#answers
      const answer = [answers[`${verb} ${request}`], answers[verb], 'N OK'].find((each) => each !== undefined)
      return answer === null ? null : answer.replace('N', number)
    }
    if (!isThere) await said.die()
    // The default, if the daemon does not answer; else longer than anything takes.
    const patience = Object.values(answers).includes(null) ? 100 : 60_000
    self.stopClient = new StopClient(said.path, { patience })
    t.after(() => self.stopClient.close())
    return self
  }

  answers (answers) { Object.assign(this.#answers, answers) }
  meanwhile (step) { this.#meanwhile = step }

  finish () { return Promise.all([...this.ends].map((end) => end())) }

  begin_nameless (name) { this.tokens[name] = [this.controller.begin('search')] }

  async lease (name, token, connection, outcome) {
    const query = { closed: [] }
    this.queries[name] = query
    const before = Date.now()
    let end
    const work = new Promise((resolve, reject) => { [end, query.fail] = [resolve, reject] })
    let began
    const begins = new Promise((resolve) => { began = resolve })
    query.ran = requests.run(token === null ? undefined : this.tokens[token][0], () =>
      new Query(this.stopClient, 'shop', () => connection, () => query.closed.push(connection)).run(() => {
        began()
        return work
      }))
    query.end = () => {
      end()
      return query.ran
    }
    if (outcome === 'runs') {
      await Promise.race([begins, query.ran])
      this.ends.add(query.end)
    } else if (outcome === 'taken') {
      await assert.rejects(query.ran, Taken)
    } else {
      await assert.rejects(query.ran, (error) => error instanceof Terminated && error.reason === outcome)
    }
    this.during = [before, Date.now()]
    assert.deepEqual(query.closed, outcome === 'taken' ? [connection] : [])
  }

  async release (name, end) {
    const query = this.queries[name]
    await query.end()
    assert.equal(query.closed.length, { kept: 0, closed: 1 }[end])
  }

  async cancelled (name, reason) {
    const query = this.queries[name]
    const error = cancelled()
    this.ends.delete(query.end)
    query.fail(error)
    await assert.rejects(query.ran, (thrown) =>
      reason === null ? thrown === error : thrown instanceof Terminated && thrown.reason === reason)
    assert.deepEqual(query.closed, [])
  }

  async lines (expected) {
    await until(() => this.heard.length >= this.checked + expected.length)
    const lines = this.heard.slice(this.checked).map((words) => words.split(' not-after=')[0])
    this.checked = this.heard.length
    assert.deepEqual(lines, expected)
  }

  not_after (milliseconds) {
    const moment = this.heard.at(-1).split(' not-after=')[1]
    assert.equal(moment !== undefined, milliseconds !== null)
    if (milliseconds === null) return
    const [before, after] = this.during.map((each) => each + milliseconds)
    assert.ok(before - 1 <= Number(moment) && Number(moment) <= after + 1, `${before} ${moment} ${after}`)
  }

  /** Waits for these counts: 0 for one that is not named, and any for null. */
  stats (expected) {
    for (const name of Object.keys(expected)) assert.ok(name in this.stopClient.stats(), `no count is called ${name}`)
    const wanted = ([name, count]) => expected[name] === null || count === (expected[name] ?? 0)
    return until(() => Object.entries(this.stopClient.stats()).every(wanted))
  }
}

test('transcripts', async (t) => {
  for (const vector of [...vectors('leases.json', 'transcripts'), ...vectors('stops.json', 'transcripts')]) {
    await t.test(`${vector.why} ${JSON.stringify(vector.answers)}`, async (t) => {
      const transcript = await Transcript.begun(t, vector)
      await transcript.run(vector.steps)
      await transcript.finish()
    })
  }
})
