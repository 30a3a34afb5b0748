// Package mcp gives agents the tools of MCP servers.
//
// A Server is the source of the tools of one server (tools.Source): a program that it starts and
// speaks to over standard input and output, or an HTTP server. It has one connection, which all runs
// share, and one set of goroutines, however many runs there are. Run connects, lists the tools, lists
// them again when the server says that they have changed, and connects again when the connection is
// lost, after a growing pause.
//
//	Run ─connect──▶ listing ──▶ connected ──lost──▶ pause ─┐
//	  ▲                            │  ▲                    │
//	  │                            └──┘ tools/list_changed │
//	  └────────────────────────────────────────────────────┘
//
// A server that cannot be reached is never fatal: before the first connection it has no tools, later
// it keeps those that it had, and calls of them are errors. A call is sent once. One that was in
// flight when the connection was lost is an error that says so.
//
// Servers are not trusted with memory, time or the log: messages, lists, descriptions and schemas are
// bounded, what a program prints beside the protocol is dropped, and a flood is read slowly. They are
// trusted with what they say about their tools (readOnlyHint chooses whether a person is asked), which
// the definition can override.
package mcp
