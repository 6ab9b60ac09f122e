'use strict'
// Cooperative termination: ends a request that has run for too long at the present load.
//
// The contract is in sdk/README.md and is the same for every language. The README.md next to this
// file has an example.

const { SettingError } = require('./lib/classes')
const { Controller } = require('./lib/controller')
const { leased } = require('./lib/databases')
const { Query, Taken } = require('./lib/lease')
const { StopClient } = require('./lib/stop-client')
const { Terminated, Token, checkpoint, current, outgoing } = require('./lib/token')
const { unleased } = require('./lib/unleased')
const { answerTerminated, middleware, terminable } = require('./lib/middleware')

module.exports = {
  Controller,
  Query,
  SettingError,
  StopClient,
  Taken,
  Terminated,
  Token,
  answerTerminated,
  checkpoint,
  current,
  leased,
  middleware,
  outgoing,
  terminable,
  unleased
}
