// Package coretest says what the stores of package core do: TestStores is the suite that every
// implementation passes, and Store is the one in memory, for tests that need no database.
//
// # Store
//
// Each call of a method is one transaction under one lock: all of it happens or nothing. What it changes is
// decided by core/conversation, as for the SQL store. Before and After are its only hooks: they fail calls,
// or do what another process does at that moment. Check reports what a run of many calls has broken. Tests
// read and change what is stored through Conversation and Edit.
//
// It has no branches (Input.Edits, Input.Regenerate), no webhooks and no search. A method that no
// test needs is missing and panics: its noun embeds the interface.
package coretest
