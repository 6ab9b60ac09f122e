// Package bywash terminates requests cooperatively: it tells a request that has run for too long at
// the present load, by its context and at its checkpoints.
//
// The contract is in sdk/README.md and is the same for every language. Controller counts requests,
// Token stands for one request, and Middleware connects both to net/http. Programs that do not use
// net/http begin and end tokens themselves.
package bywash
