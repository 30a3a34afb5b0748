package adapters_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/must"
)

// numbers are what a refusal tells of, in tokens.
type numbers struct{ limit, prompt, output int }

// refusal is a way in which model providers, servers and gateways refuse a request.
type refusal struct {
	name   string
	status int
	body   string // in it {limit}, {prompt}, {output} and {total} stand for the numbers
	clear  bool   // the words tell what is wrong; otherwise only a shorter prompt shows whether it was too long
	limit  bool   // the words tell the limit
}

// text returns the answer's body with the numbers.
func (r refusal) text(n numbers) string {
	return strings.NewReplacer("{limit}", fmt.Sprint(n.limit), "{prompt}", fmt.Sprint(n.prompt),
		"{output}", fmt.Sprint(n.output), "{total}", fmt.Sprint(n.prompt+n.output)).Replace(r.body)
}

// readRefusals returns the columns of the lines of a file of testdata/refusals.
func readRefusals(t *testing.T, name string) (lines [][]string) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/refusals/" + name))(t))) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return lines
}

// vendorsRefusals are the words of real servers for a prompt that is too long: who, the status, what
// they say (the limit, that it is too long, or nothing), the body.
func vendorsRefusals(t *testing.T) (list []refusal) {
	t.Helper()
	for _, c := range readRefusals(t, "too_long.tsv") {
		list = append(list, refusal{name: c[0], status: must.Get(strconv.Atoi(c[1]))(t), body: c[3], clear: c[2] != "nothing", limit: c[2] == "limit"})
	}
	return list
}

// otherRefusals mean something else than a prompt that is too long. Some of them quote a user who
// speaks of one. What is no JSON is put into an answer.
func otherRefusals(t *testing.T) (list []refusal) {
	t.Helper()
	forms := []string{`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`, `{"error":%s}`, `{"message":%s}`}
	for i, c := range readRefusals(t, "others.tsv") {
		r := refusal{name: fmt.Sprintf("%03d %.40s", i, c[1]), status: must.Get(strconv.Atoi(c[0]))(t), body: c[1], clear: true}
		if !json.Valid([]byte(r.body)) {
			r.body = fmt.Sprintf(forms[i%3], must.Get(json.Marshal(r.body))(t))
		}
		list = append(list, r)
	}
	return list
}

// refuse returns the error that an adapter makes of a refusal.
func refuse(t *testing.T, r refusal, n numbers) *llm.Error {
	t.Helper()
	return (&providerhttp.Peer{Provider: "p"}).Refusal(r.status, nil, []byte(r.text(n)))
}

// countsAnswer finds words that count the answer in, or do not say whether they do.
var countsAnswer = regexp.MustCompile(`equested|total|output|completion|max_\w*tokens|\+`)

// Each way in which real servers refuse a prompt that is too long is understood, with
// the numbers that it tells; some of them say nothing at all.
func TestVendorsRefusals(t *testing.T) {
	t.Parallel()
	list := vendorsRefusals(t)
	if len(list) < 43 {
		t.Errorf("got %d refusals, want the 43 of the review", len(list))
	}
	n := numbers{limit: 8192, prompt: 15_321, output: 1024}
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			e := refuse(t, r, n)
			limit := 0
			if r.limit {
				limit = n.limit
			}
			if got := e.Kind == llm.KindContextLength; got != r.clear || e.Unclear == r.clear {
				t.Errorf("got %s, unclear %v, want clear %v: %s", e.Kind, e.Unclear, r.clear, e.Message)
			}
			requested, prompt := 0, 0 // what was counted, and without the answer as far as the words say so
			switch {
			case !r.limit:
			case strings.Contains(r.body, "{total}"):
				requested = n.prompt + n.output
			case strings.Contains(r.body, "{prompt}"):
				requested = n.prompt
			}
			if !countsAnswer.MatchString(r.body) {
				prompt = requested
			}
			if e.Limit != limit || e.Prompt != prompt || e.Requested != requested {
				t.Errorf("got limit %d, prompt %d, requested %d, want %d, %d, %d: %s", e.Limit, e.Prompt, e.Requested, limit, prompt, requested, r.body)
			}
		})
	}
}

// Refusals for other reasons are not taken for a prompt that is too long, whatever they
// quote; few of them are suspected to be one, which costs a long prompt two calls.
func TestOtherRefusals(t *testing.T) {
	t.Parallel()
	list := otherRefusals(t)
	if len(list) < 100 {
		t.Errorf("got %d refusals, want at least 100", len(list))
	}
	suspected := 0
	for _, r := range list {
		e := refuse(t, r, numbers{})
		if e.Kind == llm.KindContextLength {
			t.Errorf("%s: got %s, limit %d: %s", r.name, e.Kind, e.Limit, r.body)
		}
		if e.Unclear {
			suspected++
			t.Logf("%s: suspected: %s", r.name, r.body)
		}
	}
	if suspected > len(list)/10 {
		t.Errorf("%d of %d refusals are suspected", suspected, len(list))
	}
}
