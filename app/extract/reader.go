package extract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"bobbin/app/core"
)

// Limits of a child process.
const (
	maxSeconds   = 20               // of CPU time
	maxTime      = 30 * time.Second // in total
	maxMemory    = 512 << 20        // bytes
	maxProcesses = 2                // processes
)

// Reader reads documents. Safe for concurrent use.
type Reader struct {
	program string
	slots   chan struct{}
}

// NewReader returns a Reader that runs the program, which must call Serve for Command; with an
// empty program it reads nothing.
func NewReader(program string) *Reader {
	return &Reader{program: program, slots: make(chan struct{}, maxProcesses)}
}

// Read returns the text of a document. The result depends on its type and content only. ok is
// false if this Reader reads no documents.
//
// Errors: ErrInvalid, with advice, for a document that cannot be read; ErrUnavailable when ctx
// ends before a process is free.
func (r *Reader) Read(ctx context.Context, mediaType string, data []byte) (text core.DocumentText, ok bool, err error) {
	if r.program == "" {
		return core.DocumentText{}, false, nil
	}
	var a answer
	switch err := r.runChild(ctx, mediaType, data, &a); {
	case errors.Is(err, errBusy):
		return core.DocumentText{}, false, core.Errorf(core.ErrUnavailable, "too many documents are being read; upload the file again in a moment")
	case err != nil && !a.begun && (ctx.Err() != nil || endedByLimit(err)):
		return core.DocumentText{}, false, refuseFile("reading it takes too much time or memory; split it, or save it as plain text")
	case err != nil && !a.begun:
		return core.DocumentText{}, false, fmt.Errorf("read document: %w", err)
	}
	text, err = a.documentText()
	return text, err == nil, err
}

// endedByLimit reports whether a limit ended the process: by a signal, or by Go's exit code
// when out of memory.
func endedByLimit(err error) bool {
	const exhausted = 2
	var exit *exec.ExitError
	return errors.As(err, &exit) && (exit.ExitCode() == exhausted || exit.ExitCode() < 0)
}

// errBusy means that no process became free.
var errBusy = errors.New("no process is free")

// runChild has a child process, with env in its environment, read the document. After an error, a
// holds what came before it.
func (r *Reader) runChild(ctx context.Context, mediaType string, data []byte, a *answer, env ...string) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program, Command, mediaType)
	cmd.Env = append(env, "GOMAXPROCS=1", "GOTRACEBACK=none") // no secrets
	if root := os.Getenv("SYSTEMROOT"); root != "" {          // required to start processes on Windows
		cmd.Env = append(cmd.Env, "SYSTEMROOT="+root)
	}
	cmd.Stdin = bytes.NewReader(data)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	const escaped = 6 // JSON bytes per byte, at most
	frames := json.NewDecoder(io.LimitReader(out, escaped*maxText+maxPages*100))
	for {
		var f frame
		if err := frames.Decode(&f); err != nil {
			break
		}
		a.addFrame(f)
	}
	_ = cmd.Cancel() // it has finished, or its output is invalid
	err = cmd.Wait()
	if a.ended {
		return nil
	}
	return err
}

// answer collects the frames of the child.
type answer struct {
	isPage       bool // labels are the title of a web page, not part of the text
	title        string
	hidden       bool // text was left out that the page hides
	begun, ended bool // the first frame came; the last frame came
	cut          bool
	fault        fault
	pages        int
	blank        []int
	text         strings.Builder
}

func (a *answer) addFrame(f frame) {
	a.begun = true
	a.cut = a.cut || f.Cut
	a.hidden = a.hidden || f.Hidden
	if a.isPage && f.Label != "" {
		a.title, f.Label = f.Label, ""
	}
	a.ended = a.ended || f.Done || f.Fault != ""
	if f.Pages > 0 {
		a.pages = f.Pages
	}
	if f.Fault != "" {
		a.fault = f.Fault
	}
	if f.Blank > 0 {
		a.blank = append(a.blank, f.Blank)
	}
	label := f.Label
	if label != "" {
		label = "[" + label + "]"
	}
	for _, piece := range []string{label, strings.TrimRight(f.Text, " \n")} {
		if piece = strings.TrimLeft(piece, "\n"); piece == "" {
			continue
		}
		if a.text.Len() > 0 {
			a.text.WriteString("\n")
			if f.Label != "" && piece[0] == '[' {
				a.text.WriteString("\n")
			}
		}
		a.text.WriteString(piece)
	}
}

// documentText returns the text with notes about pages without text and about missing parts.
func (a *answer) documentText() (core.DocumentText, error) {
	text := core.CleanText(core.VisibleText(core.StripControls(a.text.String())))
	if text == "" || a.fault == faultLocked || a.fault == faultUnpacked {
		switch {
		case a.fault == faultLocked:
			return core.DocumentText{}, refuseFile("it is protected by a password; save it without one and upload the copy")
		case a.fault == faultUnpacked:
			return core.DocumentText{}, refuseFile(fmt.Sprintf("it is larger than %s when unpacked; save the relevant part as a smaller file", core.ByteSize(maxUnpacked)))
		case a.fault != "":
			return core.DocumentText{}, refuseFile("it is damaged, or its content does not match its type; open it, save it again, and upload the copy")
		case !a.ended:
			return core.DocumentText{}, refuseFile("reading it takes too much time or memory; split it, or save it as plain text")
		}
	}
	notes := []string{}
	switch n := len(a.blank); {
	case n > 0 && n == a.pages:
		pages := "one page"
		if n > 1 {
			pages = fmt.Sprintf("%d pages", n)
		}
		notes = append(notes, "[none of its "+pages+" has text: they are scanned or drawn, and their content is missing here]")
	case n > 0:
		notes = append(notes, fmt.Sprintf("[%d of %d pages have no text: they are scanned or drawn, and their content is missing here: %s]", n, a.pages, pageRanges(a.blank)))
	case text == "":
		notes = append(notes, "[it has no text]")
	}
	if text != "" {
		notes = append(notes, text)
	}
	switch {
	case a.cut:
		notes = append(notes, "[… the document continues; the rest is left out …]")
	case !a.ended || a.fault != "":
		notes = append(notes, "[… the rest of the document could not be read …]")
	}
	return core.DocumentText{Text: strings.Join(notes, "\n"), Pages: a.pages, Blank: len(a.blank)}, nil
}

func refuseFile(why string) error {
	return core.Errorf(core.ErrInvalid, "the file is not accepted: %s", why)
}

// pageRanges formats ascending page numbers as 3–7, 9; only the first of many.
func pageRanges(pages []int) string {
	const most = 20
	var out []string
	for i := 0; i < len(pages); {
		end := i
		for end+1 < len(pages) && pages[end+1] == pages[end]+1 {
			end++
		}
		if len(out) == most {
			return strings.Join(out, ", ") + ", …"
		}
		if one := fmt.Sprint(pages[i]); end == i {
			out = append(out, one)
		} else {
			out = append(out, fmt.Sprintf("%s–%d", one, pages[end]))
		}
		i = end + 1
	}
	return strings.Join(out, ", ")
}
