package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"bobbin/app/core"
)

// How much a server may say that is no answer: lines in the log, and messages that it begins, where
// a long one counts for each KiB. What is over is dropped in the log, and read slowly from the server.
const (
	linesPerSecond    = 5
	linesAtOnce       = 50
	messagesPerSecond = 2000
	messagesAtOnce    = 10_000
	maxLine           = 1 << 10 // bytes of a line in the log
)

// lineLog writes lines to the log, in bounds, and keeps the last one. Safe for concurrent use.
type lineLog struct {
	ctx    context.Context // an io.Writer has no other way to get it
	log    *slog.Logger
	hide   func(text string) string // removes secrets
	stream string                   // what is written to
	limit  *rate.Limiter

	mu      sync.Mutex
	line    []byte // guarded by mu; the beginning of the line that is being written: 2*maxLine, so that secrets are found whole
	latest  string // guarded by mu
	dropped int    // guarded by mu; lines that are not in the log
}

func newLineLog(ctx context.Context, log *slog.Logger, hide func(string) string, stream string) *lineLog {
	return &lineLog{ctx: ctx, log: log, hide: hide, stream: stream, limit: rate.NewLimiter(linesPerSecond, linesAtOnce)}
}

// Write never fails.
func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		l.line = append(l.line, part[:min(len(part), max(2*maxLine-len(l.line), 0))]...)
		if end < 0 {
			break
		}
		l.endLine()
		rest = rest[end+1:]
	}
	return len(p), nil
}

// endLine logs the line that was written.
func (l *lineLog) endLine() {
	text := core.Clip(strings.TrimSpace(core.CleanText(core.StripControls(l.hide(strings.ToValidUTF8(string(l.line), "?"))))), maxLine)
	l.line = l.line[:0]
	if text == "" {
		return
	}
	l.latest = text
	if !l.limit.Allow() {
		l.dropped++
		return
	}
	attributes := []any{"to", l.stream, "text", text}
	if l.dropped > 0 {
		attributes = append(attributes, "dropped", l.dropped)
		l.dropped = 0
	}
	l.log.InfoContext(l.ctx, "mcp server wrote", attributes...)
}

// last returns the last line.
func (l *lineLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return core.Clip(l.latest, 300)
}

// slowWriter takes lines for the log at a bounded rate: to read a flood would keep a processor busy.
type slowWriter struct {
	*lineLog

	limit *rate.Limiter
}

func newSlowWriter(l *lineLog) slowWriter {
	return slowWriter{lineLog: l, limit: rate.NewLimiter(messagesPerSecond, messagesAtOnce)}
}

// Write never fails.
func (w slowWriter) Write(p []byte) (int, error) {
	_ = w.limit.WaitN(w.ctx, min(1+len(p)/maxLine, messagesAtOnce)) // an error is the end of the program
	return w.lineLog.Write(p)
}

// filter passes the messages of a program on: one JSON object a line. It drops everything else, and
// notifications that nobody reads.
type filter struct {
	ctx     context.Context // an io.Reader has no other way to get it
	closer  io.Closer
	in      *bufio.Reader
	garbage *lineLog
	limit   *rate.Limiter // of what is no answer
	rest    []byte        // of the message that is being read
}

func newFilter(ctx context.Context, in io.ReadCloser, garbage *lineLog) *filter {
	const buffer = 64 << 10
	return &filter{ctx: ctx, closer: in, in: bufio.NewReaderSize(in, buffer), garbage: garbage, limit: rate.NewLimiter(messagesPerSecond, messagesAtOnce)}
}

// Close closes the program's standard output.
func (f *filter) Close() error { return f.closer.Close() }

// Read reads of the next message.
func (f *filter) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		line, err := f.readLine()
		if err != nil {
			return 0, err
		}
		pass, answer := classify(line)
		if !answer {
			if err := f.limit.WaitN(f.ctx, min(1+len(line)/maxLine, messagesAtOnce)); err != nil {
				return 0, io.EOF
			}
		}
		switch {
		case pass:
			f.rest = append(line, '\n')
		case !isMessage(line):
			_, _ = f.garbage.Write(append(line, '\n')) // it never fails
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// errTooLong ends the connection to a server whose message has no end.
var errTooLong = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)

// readLine returns the next line that is not empty, without its end.
func (f *filter) readLine() ([]byte, error) {
	for {
		line, err := readLine(f.in)
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return fitMessage(line), nil
		}
	}
}

// readLine returns the next line with its end. An error may come with a line that has none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return nil, errTooLong
		}
		line = append(line, part...)
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// isMessage reports whether a line is a JSON object.
func isMessage(line []byte) bool { return line[0] == '{' && json.Valid(line) }

// classify reports whether a line is a message that somebody reads, and whether it is an answer.
func classify(line []byte) (pass, answer bool) {
	if line[0] != '{' {
		return false, false
	}
	var message struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
	}
	if json.Unmarshal(line, &message) != nil || message.JSONRPC != "2.0" {
		return false, false
	}
	switch {
	case message.Method == "":
		return true, true
	case message.ID != nil: // a request: it is refused
		return true, false
	default:
		return message.Method == "notifications/tools/list_changed" || message.Method == "notifications/subscriptions/acknowledged", false
	}
}
