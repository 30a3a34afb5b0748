package eval

import (
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Joined is the report of a conversation that is one of several.
type Joined struct {
	ID string
	Report
}

// Join returns the reports of several conversations, of the same policies and settings,
// as one. Counts are sums, the largest prompt is that of all, the last prompt that of the
// last conversation, and turns are counted on from conversation to conversation.
func Join(source string, parts []Joined) Report {
	out := parts[0].Report
	out.Source = source
	if len(parts) == 1 {
		return out
	}
	out.Notices = joinNotices(parts)
	out.Policies = slices.Clone(out.Policies)
	for i := range out.Policies {
		out.Policies[i].Turns = numberedTurns(out.Policies[i].Turns, parts[0].ID, 0)
	}
	for _, part := range parts[1:] {
		for i := range out.Policies {
			out.Policies[i].joinResult(part.Policies[i], part.ID, out.Turns)
		}
		out.Everything.joinEverything(part.Everything, out.Turns)
		out.Messages += part.Messages
		out.Turns += part.Turns
		out.Tokens += part.Tokens
		out.StandIns += part.StandIns
	}
	return out
}

// joinNotices returns which conversations there are, and what is to be known of each.
func joinNotices(parts []Joined) []string {
	var ids, out []string
	for _, part := range parts {
		ids = append(ids, part.ID)
		for _, n := range part.Notices {
			out = append(out, part.ID+": "+n)
		}
	}
	about := fmt.Sprintf("%d conversations, replayed one after the other: %s", len(parts), core.Clip(strings.Join(ids, ", "), 200))
	return append([]string{about}, out...)
}

// numberedTurns returns the turns as those of the conversation, counted on after so many.
func numberedTurns(turns []Turned, id string, after int) []Turned {
	turns = slices.Clone(turns)
	for i := range turns {
		turns[i].Conversation = id
		turns[i].Turn += after
	}
	return turns
}

// joinResult adds what the next conversation came to, which follows so many turns.
func (r *Result) joinResult(next Result, id string, after int) {
	r.Prompts += next.Prompts
	r.Last = next.Last
	if next.Largest > r.Largest {
		r.Largest, r.LargestTurn = next.Largest, next.LargestTurn+after
	}
	r.Tokens += next.Tokens
	r.CachedTokens += next.CachedTokens
	r.CacheShare = ratioOf(r.CachedTokens, r.Tokens)
	r.Summaries += next.Summaries
	r.Summarizer.Calls += next.Summarizer.Calls
	r.Summarizer.InputTokens += next.Summarizer.InputTokens
	r.Summarizer.OutputTokens += next.Summarizer.OutputTokens
	r.Facts.joinFound(next.Facts)
	r.Coverage = sumFound(r.Coverage, next.Coverage)
	if next.Failed != nil && r.Failed == nil {
		r.Failed = &Failure{Turn: next.Failed.Turn + after, RunError: next.Failed.RunError}
	}
	r.Turns = append(r.Turns, numberedTurns(next.Turns, id, after)...)
}

// joinFound adds the facts of the next conversation.
func (f *Found) joinFound(next Found) {
	f.Planted += next.Planted
	f.Asked += next.Asked
	f.Reachable += next.Reachable
	f.Prompt += next.Prompt
	f.Summary += next.Summary
	f.First5 += next.First5
	f.First20 += next.First20
	f.SearchAlone.First5 += next.SearchAlone.First5
	f.SearchAlone.First20 += next.SearchAlone.First20
	f.Unreachable = append(slices.Clone(f.Unreachable), next.Unreachable...)
}

// sumFound returns where the messages of both are.
func sumFound(a, b core.Coverage) core.Coverage {
	return core.Coverage{
		Messages: a.Messages + b.Messages, Summarized: a.Summarized + b.Summarized, Compacted: a.Compacted + b.Compacted,
		Verbatim: a.Verbatim + b.Verbatim, Masked: a.Masked + b.Masked, Shortened: a.Shortened + b.Shortened,
		LeftOut: a.LeftOut + b.LeftOut, Excluded: a.Excluded + b.Excluded, Lost: a.Lost + b.Lost,
	}
}

// joinEverything adds what sending everything of the next conversation would be.
func (e *Everything) joinEverything(next Everything, after int) {
	e.Prompts += next.Prompts
	e.Largest = max(e.Largest, next.Largest)
	e.Tokens += next.Tokens
	e.CachedTokens += next.CachedTokens
	e.CacheShare = ratioOf(e.CachedTokens, e.Tokens)
	if e.TooLargeFrom == 0 && next.TooLargeFrom > 0 {
		e.TooLargeFrom = next.TooLargeFrom + after
	}
}
