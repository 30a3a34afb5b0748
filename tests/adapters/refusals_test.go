package adapters_test

import (
	"regexp"
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/refusal"
)

// refuse returns the error that an adapter makes of a refusal.
func refuse(t *testing.T, r refusal.Refusal, n refusal.Numbers) *llm.Error {
	t.Helper()
	return (&providerhttp.Peer{Provider: "p"}).Refusal(r.Status, nil, []byte(r.Text(n)))
}

// countsAnswer finds words that count the answer in, or do not say whether they do.
var countsAnswer = regexp.MustCompile(`equested|total|output|completion|max_\w*tokens|\+`)

// Each way in which real servers refuse a prompt that is too long is understood, with
// the numbers that it tells; some of them say nothing at all.
func TestVendorsRefusals(t *testing.T) {
	t.Parallel()
	list := refusal.Vendors()
	if len(list) < 43 {
		t.Errorf("got %d refusals, want the 43 of the review", len(list))
	}
	n := refusal.Numbers{Limit: 8192, Prompt: 15_321, Output: 1024}
	for _, r := range list {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			e := refuse(t, r, n)
			limit := 0
			if r.Limit {
				limit = n.Limit
			}
			if got := e.Kind == llm.KindContextLength; got != r.Clear || e.Unclear == r.Clear {
				t.Errorf("got %s, unclear %v, want clear %v: %s", e.Kind, e.Unclear, r.Clear, e.Message)
			}
			requested, prompt := 0, 0 // what was counted, and without the answer as far as the words say so
			switch {
			case !r.Limit:
			case strings.Contains(r.Body, "{total}"):
				requested = n.Prompt + n.Output
			case strings.Contains(r.Body, "{prompt}"):
				requested = n.Prompt
			}
			if !countsAnswer.MatchString(r.Body) {
				prompt = requested
			}
			if e.Limit != limit || e.Prompt != prompt || e.Requested != requested {
				t.Errorf("got limit %d, prompt %d, requested %d, want %d, %d, %d: %s", e.Limit, e.Prompt, e.Requested, limit, prompt, requested, r.Body)
			}
		})
	}
}

// Other words, other numbers and other forms are understood as well. What says nothing
// is unclear: it is not taken for anything else.
func TestOtherWordsForTooLong(t *testing.T) {
	t.Parallel()
	n := refusal.Numbers{Limit: 8192, Prompt: 15_321, Output: 1024}
	for _, r := range refusal.Variants(600) {
		e := refuse(t, r, n)
		if !e.Unclear && (!r.Clear || e.Kind != llm.KindContextLength) {
			t.Errorf("%s: got %s, unclear %v (%s): %s", r.Name, e.Kind, e.Unclear, e.Message, r.Text(n))
		}
		if r.Clear && e.Unclear {
			t.Logf("%s: only suspected: %s", r.Name, r.Text(n))
		}
		if e.Limit != 0 && e.Limit != n.Limit || r.Limit && e.Limit == 0 && !e.Unclear {
			t.Errorf("%s: got the limit %d: %s", r.Name, e.Limit, r.Text(n))
		}
	}
}

// Refusals for other reasons are not taken for a prompt that is too long, whatever they
// quote; few of them are suspected to be one, which costs a long prompt two calls.
func TestOtherRefusals(t *testing.T) {
	t.Parallel()
	list := refusal.Others()
	if len(list) < 100 {
		t.Errorf("got %d refusals, want at least 100", len(list))
	}
	suspected := 0
	for _, r := range list {
		e := refuse(t, r, refusal.Numbers{})
		if e.Kind == llm.KindContextLength {
			t.Errorf("%s: got %s, limit %d: %s", r.Name, e.Kind, e.Limit, r.Body)
		}
		if e.Unclear {
			suspected++
			t.Logf("%s: suspected: %s", r.Name, r.Body)
		}
	}
	if suspected > len(list)/10 {
		t.Errorf("%d of %d refusals are suspected", suspected, len(list))
	}
}
