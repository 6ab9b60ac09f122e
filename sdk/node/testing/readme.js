'use strict'
// Runs the examples of README.md.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')

/**
 * Runs the first example that contains `word`, and returns the objects that it defines as `names`.
 * `compiled` makes JavaScript of an example in another language.
 */
function example (word, names, compiled = (code) => code) {
  const text = readFileSync(join(__dirname, '../README.md'), 'utf8')
  const [found] = [...text.matchAll(/```[jt]s\n(.*?)```/sg)].map(([, code]) => code).filter((code) => code.includes(word))
  const load = (name) => require(name === 'bywash' ? '..' : name)
  return new Function('require', 'exports', `${compiled(found)}\nreturn { ${names.join(', ')} }`)(load, {})
}

module.exports = { example }
