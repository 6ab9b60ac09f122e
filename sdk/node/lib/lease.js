'use strict'
// One query of a request on a connection to a database: leased before, released after.
//
// The rules are those of sdk/README.md, "Down to the query".

const { setTimeout: sleep } = require('node:timers/promises')
const { UNSAID, stopped } = require('./sentry')
const { Terminated, current } = require('./token')

/** Milliseconds for which a lease outlasts the deadline of its request: the stop that comes with that must find it. */
const GRACE = 10_000

/** Milliseconds from a stop to the release of what was abandoned: the daemon may still have to cancel it. */
const PAUSE = 100

/** This connection has been closed, as the stop daemon says that another has it too. Take another one. */
class Taken extends Error {
  constructor (text) {
    super(text)
    this.name = 'Taken'
    this.code = 'BYWASH_TAKEN'
  }
}

/**
 * `run` what is a query of the request that this code works for. `number` says what the database calls the connection,
 * `close` closes it, for whoever lends it as well.
 */
class Query {
  #sentry
  #database
  #number
  #close
  #token = current()
  #words
  #isLeased
  // The one that a lease holds in, or may hold in; and the one that it was released in.
  #conversation = null
  #was = null

  constructor (sentry, database, number, close) {
    this.#sentry = sentry
    this.#database = database
    this.#number = number
    this.#close = close
  }

  /** Whether anything would be said: whoever is not leased need not wait. Asked once. */
  get isLeased () {
    this.#isLeased ??= this.#mayLease()
    return this.#isLeased
  }

  #mayLease () {
    const token = this.#token
    if (!token?.request) {
      this.#sentry.count('unnamed')
      return false
    }
    if (token.told() === null && !token.leasesWith(this.#sentry)) return false
    if (this.#sentry.conversation() !== null) return true
    this.#sentry.count('unreachable')
    return false
  }

  async run (work) {
    if (this.isLeased) await this.#begin()
    let result
    try {
      result = await work()
    } catch (error) {
      // Its driver may have left the query where it was, and the daemon hear of both at once.
      if (this.#conversation !== null && isAbandoned(error) && this.#token.told()) {
        await sleep(PAUSE, undefined, { ref: false })
      }
      await this.#release()
      throw await this.over(error)
    }
    await this.#release()
    return result
  }

  /** What is thrown for this error: a query that was cancelled is a request that is over, if it is. */
  async over (error) {
    if (!this.#token || !wasCancelled(error)) return error
    const reason = await this.#reason()
    const over = reason === null ? this.#token.told() : this.#token.stopped(reason)
    if (over === null) return error
    over.cause = error
    return over
  }

  async #begin () {
    const over = this.#token.told()
    if (over !== null) {
      this.#sentry.count('stopped')
      throw over
    }
    const conversation = this.#sentry.conversation()
    const number = this.#number()
    if (conversation === null || !number || !this.#token.leasesWith(this.#sentry)) return
    this.#words = `${this.#token.request} ${this.#database} ${number}`
    this.#takes(conversation)
    const answer = await this.#lease(conversation)
    if (answer === UNSAID) this.#forgets()
    if (!answer) return this.#sentry.count('unreachable')
    if (answer === 'OK') {
      this.#sentry.count('leased')
      return this.#unlessOver()
    }
    this.#forgets()
    this.#notLeased(answer)
  }

  /** The daemon may have heard that it is over before it heard of the lease, and remembers nothing. */
  async #unlessOver () {
    const over = this.#token.told()
    if (over === null) return
    await this.#release()
    this.#sentry.count('stopped')
    throw over
  }

  /** A lease may hold from here on. */
  #takes (conversation) {
    this.#conversation = conversation
    this.#token.holds()
  }

  /** None does any more. */
  #forgets () {
    if (this.#conversation === null) return
    this.#conversation = null
    this.#token.letsGo()
  }

  #lease (conversation) {
    const left = this.#token.latest()
    const until = left === Infinity ? '' : ` not-after=${Math.floor(Date.now() + Math.max(left, 0) + GRACE)}`
    return conversation.ask(`LEASE ${this.#words}${until}`)
  }

  #notLeased (answer) {
    const reason = stopped(answer)
    const over = reason === null ? null : this.#token.stopped(reason)
    if (over !== null) {
      this.#sentry.count('stopped')
      throw over
    }
    if (answer.startsWith('ERR taken')) {
      this.#sentry.count('taken')
      this.#close()
      throw new Taken(answer)
    }
    this.#sentry.count('refused')
  }

  async #release () {
    const conversation = this.#conversation
    if (conversation === null) return
    this.#forgets()
    const answer = await conversation.ask(`RELEASE ${this.#words}`)
    if (answer === 'OK' || answer?.startsWith('ERR not_leased')) {
      this.#was = conversation
      return
    }
    this.#sentry.count('spoiled')
    this.#close()
  }

  /** Why the request was stopped, if a gateway has said so to the daemon and nobody here knows yet. */
  async #reason () {
    if (this.#was === null || !this.#token.leasesWith(this.#sentry)) return null
    this.#takes(this.#was)
    const reason = stopped(await this.#lease(this.#was))
    if (reason !== null) this.#forgets()
    await this.#release()
    return reason
  }
}

/** PostgreSQL's query_canceled; MariaDB's and MySQL's ER_QUERY_INTERRUPTED. */
function wasCancelled (error) {
  return error?.code === '57014' || error?.errno === 1317
}

/** What ends whoever listens to a signal, whether or not what he began has ended. */
function isAbandoned (error) {
  return error instanceof Terminated || error?.name === 'AbortError'
}

module.exports = { Query, Taken, wasCancelled }
