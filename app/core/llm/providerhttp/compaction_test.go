package providerhttp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// An answer is one compaction, or the usage and an error that says what is wrong.
func TestCompactionEnds(t *testing.T) {
	t.Parallel()
	text := core.Part{Text: "so far", Signature: "s"}
	large := core.Part{Text: "so far", Signature: strings.Repeat("x", llm.MaxCompaction+1)}
	for name, tt := range map[string]struct {
		parts   []core.Part
		stopped string
		fault   string // empty = it is one
	}{
		"a text":             {[]core.Part{text}, "", ""},
		"of the largest":     {[]core.Part{{Text: "so far", Signature: large.Signature[1:]}}, "", ""},
		"none":               {nil, "", "the provider returned an empty compaction"},
		"without a text":     {[]core.Part{{Signature: "s"}}, "", "the provider returned an empty compaction"},
		"two":                {[]core.Part{text, text}, "", "the provider returned 2 compactions instead of one"},
		"stopped":            {nil, "max_tokens", `the provider returned no compaction: it stopped with "max_tokens"`},
		"stopped behind one": {[]core.Part{text}, "refusal", `the provider returned no compaction: it stopped with "refusal"`},
		"a large blob":       {[]core.Part{large}, "", "the compaction is larger than 1 MiB"},
		"a large text":       {[]core.Part{{Text: large.Signature}}, "", "the compaction is larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := providerhttp.NewCompaction("p", llm.Request{Compact: true})
			for _, p := range tt.parts {
				c.Add(p)
			}
			usage := &core.Usage{InputTokens: 3}
			var res llm.Response
			err := c.End(llm.Delta{Usage: usage, Finish: "compaction", Model: "m"}, tt.stopped, func(d llm.Delta) error {
				if d.Compaction != nil {
					res.Compaction = d.Compaction
				}
				if d.Usage != nil {
					res.Usage, res.Finish = d.Usage, d.Finish
				}
				return nil
			})
			if res.Usage != usage {
				t.Errorf("got the usage %v, want it also with an error", res.Usage)
			}
			if tt.fault != "" {
				if e := llm.AsError(err); e == nil || e.Kind != llm.KindInvalid || e.Message != tt.fault || res.Compaction != nil {
					t.Errorf("got %v and %v, want %q", res.Compaction, err, tt.fault)
				}
				return
			}
			want := tt.parts[0]
			want.Type = core.PartCompaction
			if err != nil || res.Finish != core.FinishStop || !cmp.Equal(res.Compaction, &want) {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
}

// The caller may leave at each delta.
func TestCompactionIsLeft(t *testing.T) {
	t.Parallel()
	leave := func(llm.Delta) error { return providerhttp.ErrLeft }
	for _, parts := range [][]core.Part{nil, {{Text: "so far"}}} {
		c := providerhttp.NewCompaction("p", llm.Request{Compact: true})
		for _, p := range parts {
			c.Add(p)
		}
		if err := c.End(llm.Delta{}, "", leave); !errors.Is(err, providerhttp.ErrLeft) {
			t.Errorf("got %v", err)
		}
	}
}
