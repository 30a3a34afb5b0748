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

// How much of what a program says beside the protocol is in the log.
const (
	linesPerSecond = 5
	linesAtOnce    = 50
	maxLine        = 1 << 10 // bytes of a line
)

// programRate is how many bytes a second a program may say for long, after the first 2*maxMessage: then it waits.
const programRate = 4 << 20

// output is what a program says beside the protocol: its lines are in the log, in bounds. Safe for
// concurrent use.
type output struct {
	ctx   context.Context // an io.Writer has no other way to get it
	log   *slog.Logger
	hide  func(text string) string // removes secrets
	lines *rate.Limiter
	pace  *rate.Limiter // of all that the program says, messages too

	mu     sync.Mutex
	line   []byte // guarded by mu; the beginning of the line that is being written: 2*maxLine, so that secrets are found whole
	latest string // guarded by mu
}

func newOutput(ctx context.Context, log *slog.Logger, hide func(string) string) *output {
	return &output{ctx: ctx, log: log, hide: hide, lines: rate.NewLimiter(linesPerSecond, linesAtOnce), pace: rate.NewLimiter(programRate, 2*maxMessage)}
}

// Write takes the standard error, of which a flood has to wait. It never fails.
func (o *output) Write(p []byte) (int, error) {
	_ = o.pace.WaitN(o.ctx, len(p)) // the program ends with ctx
	o.mu.Lock()
	defer o.mu.Unlock()
	for part := range bytes.Lines(p) {
		o.line = append(o.line, part[:min(len(part), max(2*maxLine-len(o.line), 0))]...)
		if bytes.HasSuffix(part, []byte("\n")) {
			o.logLine(o.line)
			o.line = o.line[:0]
		}
	}
	return len(p), nil
}

// logLine logs a line; o.mu is held.
func (o *output) logLine(line []byte) {
	line = line[:min(len(line), 2*maxLine)]
	text := core.Clip(strings.TrimSpace(core.CleanText(core.StripControls(o.hide(strings.ToValidUTF8(string(line), "?"))))), maxLine)
	if text == "" {
		return
	}
	o.latest = text
	if o.lines.Allow() {
		o.log.InfoContext(o.ctx, "mcp server wrote", "text", text)
	}
}

// last returns the last line; nothing of no output.
func (o *output) last() string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return core.Clip(o.latest, 300)
}

// newMessages returns a reader of the messages of a program: one JSON object a line. What is no message is logged.
func newMessages(program io.ReadCloser, out *output) *fittedBody {
	in := bufio.NewReaderSize(program, 64<<10)
	return &fittedBody{ReadCloser: program, next: func() ([]byte, error) {
		line, err := readLine(in)
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark))); err != nil || len(line) == 0 {
			return nil, err
		}
		var message struct {
			JSONRPC string `json:"jsonrpc"`
		}
		if json.Unmarshal(line, &message) == nil && message.JSONRPC == "2.0" {
			return append(fitMessage(line), '\n'), nil
		}
		out.mu.Lock()
		defer out.mu.Unlock()
		out.logLine(line)
		return nil, nil
	}}
}

// errTooLong ends the connection to a server whose message has no end.
var errTooLong = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)

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
