package summarize

import (
	"context"
	"errors"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// summarizeMessages summarizes all messages into j.summary in one call, or up to two more.
func (j *job) summarizeMessages(ctx context.Context) error {
	pieces := transcriptPieces(j.count, j.req.Messages, j.req.Preset)
	if len(pieces) == 0 {
		return errNothing
	}
	// It may come from a model with a larger window.
	if limit := max(j.freeTokens()/2, 0); j.count.Text(j.summary) > limit {
		j.summary = prompttext.Oldest(j.count, j.summary, limit)
	}
	room := j.messageRoom()
	if room < minMaterialTokens {
		return errWindow
	}
	var text string
	text, j.shortened = fitPieces(j.count, pieces, room)
	summary, err := j.summarizeText(ctx, text)
	j.summary = summary
	return err
}

// freeTokens returns how many tokens the previous summary and the messages may have together.
func (j *job) freeTokens() int { return j.promptLimit() - j.fixed }

// messageRoom returns how many tokens of messages the call may have besides the previous summary.
func (j *job) messageRoom() int {
	return j.freeTokens() - min(j.count.Text(j.summary), max(j.freeTokens()/2, 0))
}

// minPieceTokens is how many tokens a cut message keeps at least.
const minPieceTokens = 32

// fitPieces returns the text of the pieces in at most room tokens, and how many of them
// it cut in the middle. Callers pass what fits, so only a single message larger than a
// call is cut; of several the longest, tool results first.
func fitPieces(count core.TextCounter, pieces []piece, room int) (text string, shortened int) {
	for _, tools := range []bool{true, false} {
		sizes, others := []int{}, 0
		for _, p := range pieces {
			if p.tool || !tools {
				sizes = append(sizes, p.tokens)
			} else {
				others += p.tokens
			}
		}
		share := max(prompttext.FairShare(sizes, room-others), minPieceTokens)
		for i, p := range pieces {
			if (p.tool || !tools) && p.tokens > share {
				p.text, p.cut = prompttext.Middle(count, p.text, share-1), true
				p.tokens = count.Text(p.text) + 1
				pieces[i] = p
			}
		}
	}
	var b strings.Builder
	for i, p := range pieces {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.text)
		if p.cut {
			shortened++
		}
	}
	if text = b.String(); count.Text(text) > room { // too many small ones
		return prompttext.Middle(count, text, room), len(pieces)
	}
	return text, shortened
}

// summarizeText extends the previous summary by the text of the messages. It retries a
// refused answer or a failed call once, with the reason.
func (j *job) summarizeText(ctx context.Context, text string) (string, error) {
	data := requestData{Previous: makeHarmless(j.summary), Transcript: text, Focus: j.req.Focus, Speakers: j.req.Speakers, Language: j.language, Tokens: j.ask}
	summary, err := j.requestSummary(ctx, data)
	e := llm.AsError(err)
	if err == nil || ctx.Err() != nil || e != nil && !e.Retryable() && e.Kind != llm.KindUnknown { // else a second request may succeed
		return summary, err
	}
	var refused rejection
	if errors.As(err, &refused) {
		data.Rejected = refused.reason
	}
	if errors.Is(err, errCutOff) {
		data.Tokens = max(data.Tokens/2, 1)
	}
	return j.requestSummary(ctx, data)
}

// requestSummary requests the summary once, and a shorter one once.
func (j *job) requestSummary(ctx context.Context, data requestData) (string, error) {
	res, err := j.callModel(ctx, renderRequest(data))
	if err != nil {
		return "", err
	}
	text, err := acceptAnswer(res)
	if err != nil {
		return "", err
	}
	n := j.count.Text(text)
	held := evidence{transcript: data.Transcript, previous: j.summary, prompt: j.system + "\n" + j.frame, minTokens: minSummaryTokens(j.req.Replaces, data.Tokens)}
	if err := held.checkText(text, n); err != nil {
		return "", err
	}
	if n > j.limit {
		if text, err = j.shortenSummary(ctx, text, held); err != nil {
			return "", err
		}
	}
	if j.count.Text(text) >= j.req.Replaces {
		return "", errNotSmaller
	}
	return text, nil
}

// shortenSummary brings a summary within its limit: first by a request for a shorter one,
// then by cutting the oldest content. Notes on a tool loop, for which a run waits, are
// cut immediately. Only a done ctx is an error.
func (j *job) shortenSummary(ctx context.Context, text string, held evidence) (string, error) {
	have := j.count.Text(text)
	if !j.askedShorter && j.req.Preset != PresetCompaction && have+j.fixed <= j.promptLimit() {
		j.askedShorter = true
		data := requestData{Previous: makeHarmless(text), Have: have, Tokens: j.ask, Language: j.language}
		data.Length = lengthOf(data.Tokens, data.Language)
		request := renderFile("shorten.md", data)
		res, err := j.callModel(ctx, request)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err == nil {
			shorter, refused := acceptAnswer(res)
			if refused == nil && len(shorter) < len(text) && held.checkText(shorter, j.count.Text(shorter)) == nil {
				text = shorter
			}
		}
	}
	return prompttext.Oldest(j.count, text, j.limit), nil
}
