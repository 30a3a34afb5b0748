package summarize

import (
	"context"
	"errors"
	"strings"

	"bobbin/app/core/llm"

	"bobbin/app/core/cut"
)

const (
	errNothing = rejection("there was nothing to summarize")
	errWindow  = rejection("the window of the summary model is too small")
	errTooMuch = rejection("there is too much for the summary model's window")
)

// fold summarizes all messages into j.summary: summary k from summary k−1 and
// chunk k. Usually there is one chunk. It makes at most maxSteps + maxTightened
// steps of at most three calls each.
func (j *job) fold(ctx context.Context) error {
	pieces := transcript(j.count, j.req.Messages, resultLimit(j.req.Preset))
	if len(pieces) == 0 {
		return errNothing
	}
	for done, part := 0, 1; done < len(pieces); {
		room := j.makeRoom()
		if room < leastMaterial {
			return errWindow
		}
		parts := part - 1 + chunks(pieces[done:], room)
		if parts > maxSteps {
			if !j.squeeze(pieces[done:], room, maxSteps-part) {
				return errTooMuch
			}
			parts = part - 1 + chunks(pieces[done:], room)
		}
		text, tokens, n := take(j.count, pieces[done:], room)
		summary, err := j.step(ctx, text, tokens, part, parts)
		if j.tighten(err) {
			continue
		}
		if err != nil {
			return err
		}
		j.summary, done, part = summary, done+n, part+1
	}
	return nil
}

// makeRoom cuts a summary so far that would leave too little room (it may come
// from a model with a larger window), and returns the tokens that every chunk may
// have, this one and those beside a summary of the largest size.
func (j *job) makeRoom() int {
	free := j.prompt() - j.fixed
	if j.count.Text(j.summary) > free/2 {
		j.summary = cut.Oldest(j.count, j.summary, max(free/2, 0))
	}
	return free - min(max(j.count.Text(j.summary), j.limit), free/2)
}

// chunks returns how many chunks of room tokens the pieces make.
func chunks(pieces []piece, room int) int {
	n, free := 0, 0
	for _, p := range pieces {
		size := min(p.tokens, room)
		if n == 0 || size > free {
			n, free = n+1, room
		}
		free -= size
	}
	return n
}

// leastPiece is the number of tokens that a message keeps at least when a backlog
// is squeezed.
const leastPiece = 32

// squeeze shortens the longest pieces so that they make at most most chunks, and
// reports whether that is possible. Two neighboring chunks are together larger
// than room, so half of their room is sure to be used.
func (j *job) squeeze(pieces []piece, room, most int) bool {
	each := room * most / 2 / len(pieces)
	if each < leastPiece {
		return false
	}
	for i, p := range pieces {
		if p.tokens > each {
			text := cut.Middle(j.count, p.text, each-1)
			pieces[i] = piece{text: text, tokens: j.count.Text(text) + 1}
		}
	}
	return true
}

// take returns the text of the first pieces that fit room, its tokens and how
// many pieces it holds. One piece that is larger than room is cut in the middle.
func take(count counter, pieces []piece, room int) (text string, tokens, n int) {
	if pieces[0].tokens > room {
		text = cut.Middle(count, pieces[0].text, room-1)
		return text, count.Text(text), 1
	}
	var b strings.Builder
	for n < len(pieces) && tokens+pieces[n].tokens <= room {
		if n > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(pieces[n].text)
		tokens += pieces[n].tokens
		n++
	}
	return b.String(), tokens, n
}

// tighten reports whether err is the provider's "context length exceeded", and
// another try with smaller chunks is due.
func (j *job) tighten(err error) bool {
	e := llm.AsError(err)
	if e == nil || e.Kind != llm.KindContextLength || j.tightened >= maxTightened {
		return false
	}
	j.tightened++
	if e.Limit > 0 && e.Limit < j.window {
		j.window = e.Limit
	} else {
		j.scale *= 1.5
	}
	j.measure()
	return true
}

// step makes the next summary from the one so far and a chunk. An answer that is
// refused, or a call that failed, is tried once more, with the reason.
func (j *job) step(ctx context.Context, text string, tokens, part, parts int) (string, error) {
	s := step{job: j, most: j.count.Text(j.summary) + tokens}
	if parts == 1 && j.req.Replaces > 0 {
		s.most = j.req.Replaces
	}
	data := requestData{Previous: harmless(j.summary), Transcript: text, Focus: j.req.Focus,
		Language: j.language, Part: part, Parts: parts, Tokens: j.ask}
	summary, err := s.attempt(ctx, data, nil)
	if err == nil || !worthAnother(ctx, err) {
		return summary, err
	}
	var refused rejection
	if errors.As(err, &refused) {
		data.Rejected = refused.Error()
	}
	return s.attempt(ctx, data, err)
}

// worthAnother reports whether the same request may bring a summary yet.
func worthAnother(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	e := llm.AsError(err)
	return e == nil || e.Retryable() || e.Kind == llm.KindUnknown
}

// step is one step of a fold.
type step struct {
	*job
	most      int  // the summary must be smaller than this
	shortened bool // a shorter answer was asked for already
}

// attempt asks for the summary once, and once for a shorter one. before is why
// the attempt before it failed.
func (s *step) attempt(ctx context.Context, data requestData, before error) (string, error) {
	res, err := s.send(ctx, s.prompts.request(data))
	if err != nil {
		return "", err
	}
	text, err := accept(res, before, data.Transcript)
	if err != nil {
		return "", err
	}
	if n := s.count.Text(text); n > s.limit {
		if text, err = s.shorten(ctx, text, n); err != nil {
			return "", err
		}
	}
	if s.count.Text(text) >= s.most {
		return "", errNotSmaller
	}
	return text, nil
}

// shorten brings a summary over its limit within it: once by asking for a shorter
// one, and then by cutting the oldest content. Notes on a tool loop, for which a run
// waits, are cut at once (REQUIREMENTS L5). Only a done ctx is an error.
func (s *step) shorten(ctx context.Context, text string, have int) (string, error) {
	if !s.shortened && s.req.Preset != PresetCompaction && have+s.fixed <= s.prompt() {
		s.shortened = true
		request := s.prompts.shorten(requestData{Previous: harmless(text), Have: have, Tokens: s.ask, Language: s.language})
		res, err := s.send(ctx, request)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if shorter, refused := accept(res, err, ""); err == nil && refused == nil && len(shorter) < len(text) {
			text = shorter
		}
	}
	return cut.Oldest(s.count, text, s.limit), nil
}
