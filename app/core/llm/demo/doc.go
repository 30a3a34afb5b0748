// Package demo is the model that answers when no other is configured: a
// demonstration without a language model behind it.
//
// It says so in the first answer of a conversation. After that it answers by
// rules from what it is sent: messages and the summary in the system blocks. So
// it shows truthfully what is still in the prompt and what is not. It calls the
// tools calculator and current_time when they are offered, and it is a
// summarizer that copies sentences (see summarize.go) when it is asked as one.
//
// It works offline and is deterministic: the same request gives the same
// answer, tool call ids included. rules.go has the table of rules; each rule is
// a function of the conversation.
package demo
