// Package bywash terminates requests cooperatively: a request is told when it has run for too long for the
// present load, by its context and at its checkpoints.
//
// The contract is in sdk/README.md, the same for every language. Controller counts, Token is one request,
// Middleware connects both to net/http. Whoever serves by other means begins and ends tokens himself.
package bywash
