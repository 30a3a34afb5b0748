// Package exchange makes one HTTP exchange with a provider of models, the same
// way for every adapter: time limits, typed errors for whatever goes wrong,
// Retry-After, bounds on what is read, keys that show up nowhere.
//
// An adapter hands it a request and a function that reads the answer while it
// arrives; both run on the caller's goroutine, and no other is started. When Do
// returns, the request has ended.
package exchange
