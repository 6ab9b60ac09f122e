'use strict'
// One query of a request on a connection to a database: leased before, released after.
//
// The rules are those of sdk/README.md, "Down to the query".

const { setTimeout: sleep } = require('node:timers/promises')
const { UNSAID, stopped } = require('./stop-client')
const { Terminated, requests } = require('./token')

/**
 * Milliseconds for which a lease outlasts the deadline of its request. The stop comes at that
 * deadline and must find the lease.
 */
const GRACE = 10_000

/**
 * Milliseconds from a stop to the release of an abandoned query. The daemon may still have to
 * cancel it.
 */
const PAUSE = 100

/**
 * The error for a connection that another client of the daemon has leased too. It has been closed;
 * take another one.
 */
class Taken extends Error {
  constructor (text) {
    super(text)
    this.name = 'Taken'
    this.code = 'BYWASH_TAKEN'
  }
}

/**
 * A query of the current request. `number` returns the database's number of the connection. `close`
 * closes the connection, so that its pool drops it as well.
 */
class Query {
  #stopClient
  #database
  #number
  #close
  #token = requests.getStore()
  #words
  #isLeased
  // The conversation in which a lease holds, or may hold; and the one in which it was released.
  #conversation = null
  #was = null
  // Whether the connection was closed because a release was refused or not answered.
  #isSpoiled = false

  constructor (stopClient, database, number, close) {
    this.#stopClient = stopClient
    this.#database = database
    this.#number = number
    this.#close = close
  }

  /**
   * Whether the query will be leased, or refused: another one need not wait. It is determined once.
   */
  get isLeased () {
    this.#isLeased ??= this.#mayLease()
    return this.#isLeased
  }

  #mayLease () {
    const token = this.#token
    if (token?.isTerminated) return true
    if (!token?.request) {
      if (token !== null) this.#stopClient.count('unnamed')
      return false
    }
    if (this.#stopClient.conversation() !== null) return token.leasesWith(this.#stopClient)
    this.#stopClient.count('unreachable')
    return false
  }

  async run (work) {
    if (this.isLeased) await this.#begin()
    let result
    try {
      result = await work()
    } catch (error) {
      // The driver may have abandoned a query that still runs. Without a pause the daemon would
      // read stop and release at once.
      if (this.#conversation !== null && isAbandoned(error) && this.#token.told()) {
        await sleep(PAUSE, undefined, { ref: false })
      }
      await this.#release()
      throw await this.over(error)
    }
    await this.#release()
    return result
  }

  /**
   * Returns the error to throw for a query's error: a cancelled query throws `Terminated` if its
   * request is over.
   */
  async over (error) {
    if (!this.#token || !wasCancelled(error)) return error
    const reason = await this.#reason()
    const over = reason === null ? this.#token.told() : this.#token.stopped(reason)
    if (over === null) return error
    over.cause = error
    return over
  }

  async #begin () {
    const over = this.#refusal()
    if (over !== null) throw over
    const conversation = this.#stopClient.conversation()
    const number = this.#number()
    if (conversation === null || !number || !this.#token.leasesWith(this.#stopClient)) return
    this.#words = `${this.#token.request} ${this.#database} ${number}`
    this.#takes(conversation)
    const answer = await this.#lease(conversation)
    if (answer === UNSAID) this.#forgets()
    if (!answer) this.#stopClient.count('unreachable')
    else if (answer === 'OK') this.#stopClient.count('leased')
    else this.#notLeased(answer)
    const overMeanwhile = this.#refusal()
    if (overMeanwhile === null) return
    // The daemon may have read the stop before the lease, and it does not remember such a stop.
    await this.#release()
    throw overMeanwhile
  }

  /** Returns the error to throw if the request is over, so that its query must not begin. */
  #refusal () {
    this.#token.look()
    const over = this.#token.told()
    if (over !== null) this.#stopClient.count('stopped')
    return over
  }

  /** Records that a lease may hold from here on. */
  #takes (conversation) {
    this.#conversation = conversation
    this.#token.holds()
  }

  /** Records that no lease holds any more. */
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
    this.#forgets()
    const reason = stopped(answer)
    const over = reason === null ? null : this.#token.stopped(reason)
    if (over !== null) {
      this.#stopClient.count('stopped')
      throw over
    }
    if (answer.startsWith('ERR taken')) {
      this.#stopClient.count('taken')
      this.#close()
      throw new Taken(answer)
    }
    this.#stopClient.refused('lease', answer)
  }

  async #release () {
    const conversation = this.#conversation
    if (conversation === null) return
    this.#forgets()
    const answer = await conversation.ask(`RELEASE ${this.#words}`)
    // After any answer the daemon can be asked for the reason.
    if (answer) this.#was = conversation
    if (answer === 'OK' || answer?.startsWith('ERR not_leased') || this.#isSpoiled) return
    this.#isSpoiled = true
    this.#stopClient.count('spoiled')
    this.#close()
  }

  /**
   * Returns why the request was stopped, if a gateway has told the daemon and it is not known here
   * yet.
   */
  async #reason () {
    if (this.#was === null || !this.#token.leasesWith(this.#stopClient)) return null
    // The cancellation at a closed connection may still be under way. Until its end the daemon
    // refuses each lease of the connection, so the question names work in this process.
    if (this.#isSpoiled) this.#words = `${this.#token.request} self ${this.#stopClient.newNumber()}`
    this.#takes(this.#was)
    const reason = stopped(await this.#lease(this.#was))
    if (reason !== null) this.#forgets()
    await this.#release()
    return reason
  }
}

/** Recognises PostgreSQL's query_canceled, and MariaDB's and MySQL's ER_QUERY_INTERRUPTED. */
function wasCancelled (error) {
  return error?.code === '57014' || error?.errno === 1317
}

/** Recognises errors of work that listens to a signal, and that may have left a query running. */
function isAbandoned (error) {
  return error instanceof Terminated || error?.name === 'AbortError'
}

module.exports = { Query, Taken, wasCancelled }
