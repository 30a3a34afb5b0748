// Package client is a client of Bobbin's native HTTP API.
//
// Error responses are *ProblemError, which errors.Is matches with the kinds of package core.
// Streams reconnect by themselves: when the connection breaks or falls silent, they resume
// after the last event, and yield every event and every piece of text once.
//
// A Client is safe for concurrent use. It starts no goroutines of its own.
package client
