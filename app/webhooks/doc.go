// Package webhooks tells other programs how runs end: by an HTTP request to an
// address that a caller named, signed as Standard Webhooks has it.
//
// The address is not trusted: only public ones are connected to, by HTTPS, unless
// the settings allow private ones; what counts is the address that a name has when
// it is connected to. Redirects are not followed, no proxy is used, and of the
// answer nothing is read but its status and two headers.
//
// What is told is read when it is sent, not when the run ends: what was deleted
// meanwhile is not told.
package webhooks
