// Package providerhttp sends requests to providers of models, the same way for every
// adapter: with time limits, typed errors, Retry-After, bounded answers, and without keys in
// errors.
//
// An adapter passes a function that builds the request and one that reads the answer as it
// arrives. Both run on the caller's goroutine. When Do returns, the request has ended.
package providerhttp
