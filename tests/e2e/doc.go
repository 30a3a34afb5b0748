// Package e2e drives the whole program through its HTTP API, in this process: the
// parts as app.New joins them, a database of its own, and language models that are
// the demonstration or tests/provider. Nothing is looked up behind the API's back.
//
// The tests called TestShow… measure what the documents promise, and log their
// figures; `make show-long`, `make show-truth` and so on print them.
package e2e
