'use strict'
// The declaration of a class of requests, and the errors of a wrong declaration.
//
// Names, ranges and defaults are the gateway's (run_min, run_max; alpha, low, high and interval of
// the policy `loss`), so that a class means the same inside the application as in front of it. A
// wrong setting is an error when the controller is created, because a wrong threshold would show
// only under overload. Times are in milliseconds.

const HOUR = 3_600_000

/** Minimum, maximum and default of each field. A field without a default must be set. */
const FIELDS = {
  runMin: [1, HOUR],
  runMax: [1, HOUR],
  alpha: [0, 100, 4],
  low: [0, 1, 0.05],
  high: [0, 1, 0.15],
  interval: [100, HOUR, 10_000],
  retryAfter: [0, HOUR, null]
}

/** An invalid setting. It names the field and the values. */
class SettingError extends Error {
  constructor (text) {
    super(text)
    this.name = 'SettingError'
  }
}

/**
 * Returns the settings of a class, checked and completed by the defaults. Throws a `SettingError`
 * if one is invalid.
 */
function checked (name, given) {
  const wrong = (text) => new SettingError(`class ${name}: ${text}`)
  const settings = { name }
  for (const field of Object.keys(given)) {
    if (!Object.hasOwn(FIELDS, field)) throw wrong(`${field} is not a setting; the settings are ${Object.keys(FIELDS).join(', ')}`)
  }
  for (const [field, [least, most, preset]] of Object.entries(FIELDS)) {
    const value = given[field] ?? preset
    // The negated form also rejects NaN.
    if (value !== null && !(typeof value === 'number' && value >= least && value <= most)) {
      throw wrong(`${field} is ${value}, and must be from ${least} to ${most}`)
    }
    settings[field] = value
  }
  const { runMin, runMax, low, high } = settings
  if (runMin > runMax) throw wrong(`runMin ${runMin} must not be above runMax ${runMax}`)
  if (low >= high) throw wrong(`low ${low} must be below high ${high}`)
  settings.retryAfter ??= settings.interval
  return Object.freeze(settings)
}

/** Returns the threshold for the loss `p`: LB + F(p)(UB - LB), paper 2, SERT §3.2. */
function granted ({ runMin, runMax, alpha, low, high }, p) {
  if (p <= low) return runMax
  if (p >= high) return runMin
  return runMin + ((high - p) / (high - low)) ** alpha * (runMax - runMin)
}

module.exports = { SettingError, checked, granted }
