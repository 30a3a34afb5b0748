// Package slack drives the whole program through Slack: a Bobbin in this process, as tests/e2e
// has it, in the workspaces of a Slack server in memory.
//
// The tests called TestShow… measure what the documents promise, as those of tests/e2e do.
package slack
