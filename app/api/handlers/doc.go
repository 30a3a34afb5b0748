// Package handlers answers the requests of the native API: it reads what came
// in, asks one service or repository, and writes what it got as JSON or as a
// stream of events. One noun, one file.
//
// A handler is a func(*gin.Context) error. It writes an answer or returns an
// error, never both; package api turns errors into problems. Writes go through
// the chat service, reads may go to the repositories directly. Bodies are read
// strictly: what a handler does not know is refused by name, because a misspelled
// field that is silently ignored costs its sender more than an error does.
//
// A request that is held open (a stream, a waiting one) only listens: when it
// goes away the run goes on.
package handlers
