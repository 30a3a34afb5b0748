// Package transfer brings messages into a session without running an agent, and
// sessions out.
//
//	Append ── one message ──┐
//	                        ├─▶ checks ─▶ one transaction ─▶ events
//	Import ── a history ────┘
//	Export ── pages of the log ─▶ JSON, JSON lines or Markdown
//
// An import is read line by line (read.go), each line in the shape that it has
// itself: Bobbin's own, OpenAI's or LangChain's (shapes.go). All of it is checked
// before anything is written, and everything that is wrong is named by its line:
// a history is imported as a whole or not at all. What a prompt needs to be valid,
// that every tool result follows its call, is checked too.
//
// ExportUser puts the exports of a user's sessions into a ZIP archive, with all else that
// is of the user (user.go).
//
// An export is never in memory as a whole. Import takes what Export writes as JSON
// or as JSON lines, and gives the same conversation: texts, tool calls and results
// byte for byte.
package transfer
