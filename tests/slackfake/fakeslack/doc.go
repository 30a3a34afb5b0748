// Package fakeslack is a Slack server in memory, for tests and for trying Slack sync without
// a workspace. It has workspaces with channels, users and one app; it answers the Web API
// methods that the app calls, sends signed events, interactions and slash commands to the
// app's request URLs or over Socket Mode, and lets tests act as users.
//
// Slack's rules that clients trip over are in force: limits on texts and blocks, streams
// that end after five minutes, retries of events. Faults (429, lost answers, duplicates) are switched on by tests.
//
// Every exported method is safe for concurrent use. Events of one channel are delivered in
// order: the next one follows the first answer to the one before, or its timeout.
//
// The caller of an unexported function holds Server.mu, unless its comment says that the
// function takes it.
package fakeslack
