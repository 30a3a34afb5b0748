// Package client asks a running Bobbin over its native HTTP API.
//
// Errors that the server answers are *ProblemError, which errors.Is finds by the
// kinds of package core. Streams heal themselves: when the connection breaks or
// falls silent, they come back with the number of the last event, and give on
// every event once and every piece of text once.
//
// A Client is safe for concurrent use. It starts no goroutines of its own.
package client
