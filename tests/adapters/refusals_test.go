package adapters_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/must"
	"bobbin/tests/seed"
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
	for i, c := range readRefusals(t, "others.tsv") {
		r := refusal{name: fmt.Sprintf("%03d %.40s", i, c[1]), status: must.Get(strconv.Atoi(c[0]))(t), body: c[1], clear: true}
		if !json.Valid([]byte(r.body)) {
			r.body = wrappers()[i%3].wrap(r.body)
		}
		list = append(list, r)
	}
	return list
}

// generatedRefusals returns n refusals of prompts that are too long: other words, other numbers, other
// forms, and some that say nothing. The same n gives the same refusals.
func generatedRefusals(t *testing.T, n int) []refusal {
	t.Helper()
	random := seed.Fixed(7, uint64(n))
	wordings, forms, silent := readRefusals(t, "wordings.txt"), wrappers(), silences()
	out := make([]refusal, 0, n)
	for i := range n {
		status := []int{http.StatusBadRequest, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}[random.IntN(4)]
		if i%8 == 7 {
			out = append(out, refusal{name: fmt.Sprintf("%03d silent", i), status: status, body: silent[(i/8)%len(silent)]})
			continue
		}
		words, f := wordings[random.IntN(len(wordings))][0], forms[random.IntN(len(forms))]
		body := f.wrap(words)
		if random.IntN(3) == 0 { // a gateway before the provider
			outer := forms[random.IntN(len(forms))]
			body, f.name = outer.wrap(body), outer.name+" of "+f.name
		}
		out = append(out, refusal{name: fmt.Sprintf("%03d %s", i, f.name), status: status, body: body, clear: true, limit: strings.Contains(words, "{limit}")})
	}
	return out
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

// Other words, other numbers and other forms are understood as well. What says nothing
// is unclear: it is not taken for anything else.
func TestOtherWordsForTooLong(t *testing.T) {
	t.Parallel()
	n := numbers{limit: 8192, prompt: 15_321, output: 1024}
	for _, r := range generatedRefusals(t, 600) {
		e := refuse(t, r, n)
		if !e.Unclear && (!r.clear || e.Kind != llm.KindContextLength) {
			t.Errorf("%s: got %s, unclear %v (%s): %s", r.name, e.Kind, e.Unclear, e.Message, r.text(n))
		}
		if r.clear && e.Unclear {
			t.Logf("%s: only suspected: %s", r.name, r.text(n))
		}
		if e.Limit != 0 && e.Limit != n.limit || r.limit && e.Limit == 0 && !e.Unclear {
			t.Errorf("%s: got the limit %d: %s", r.name, e.Limit, r.text(n))
		}
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

// wrapper puts a sentence, or a whole answer, into an answer.
type wrapper struct {
	name string
	wrap func(text string) string
}

func wrappers() []wrapper {
	quoted := func(text string) string {
		raw, err := json.Marshal(text)
		if err != nil { // a string can always be written
			panic(err)
		}
		return string(raw)
	}
	// python is a string as Python prints it.
	python := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "'"
	}
	in := func(format string) func(string) string {
		return func(text string) string { return strings.ReplaceAll(format, "%s", quoted(text)) }
	}
	return []wrapper{
		{"error.message", in(`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`)},
		{"error", in(`{"error":%s}`)},
		{"message", in(`{"message":%s}`)},
		{"detail", in(`{"detail":%s}`)},
		{"detail list", in(`{"detail":[{"loc":["body","messages"],"msg":%s,"type":"value_error"}]}`)},
		{"errors", in(`{"errors":[{"code":"bad_request","message":%s}]}`)},
		{"list", in(`[{"error":{"code":400,"message":%s,"status":"INVALID_ARGUMENT"}}]`)},
		{"raw", in(`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":%s,"provider_name":"X"}}}`)},
		{"three levels", in(`{"response":{"body":{"error":{"error":{"message":%s}}}}}`)},
		{"base_resp", in(`{"base_resp":{"status_code":2013,"status_msg":%s}}`)},
		{"fault", in(`{"fault":{"faultstring":%s,"detail":{"errorcode":"steps.x"}}}`)},
		{"AWS", in(`{"__type":"ValidationException","Message":%s}`)},
		{"text", func(text string) string { return text }},
		{"Python", func(text string) string {
			return `{"detail":` + quoted(`Error code: 400 - {'error': {'message': `+python(text)+`, 'type': 'BadRequestError', 'code': None}}`) + `}`
		}},
		{"exception", func(text string) string {
			return `{"error":{"message":` + quoted("litellm.BadRequestError: OpenAIException - "+text) + `,"code":"400"}}`
		}},
		{"cut off", func(text string) string { return `{"error":{"message":` + quoted(text) + `,"type":"invalid_requ` }},
	}
}

// silences are answers that say that something is wrong, and not what.
func silences() []string {
	return []string{
		"", "{}", "null", `{"error":null}`, `{"error":{"message":""}}`, "Bad Request", `{"message":"invalid request"}`, `{"error":{"message":"Provider returned error","code":400}}`,
		"<html><head><title>413 Request Entity Too Large</title></head></html>", `{"error":true}`, `{"status":"failure"}`, `{"error":{"code":"bad_request","message":"The request was malformed."}}`,
		`{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}`,
		`{"error":{"message":"Bad Request (request id: 2026112610304012345)","type":"new_api_error"}}`,
		`{"error":{"message":"The request is invalid: Invalid request parameters. Please check your input and try again. Please check the request body, required fields, and request format."}}`,
		`{"error":{"message":"Unknown error","code":"unknown_error"}}`, `{"detail":"An unknown error occurred"}`, `{"error":"invalid_request_error: unexpected error"}`,
		`{"error":{"message":"Upstream failed: invalid JSON response from backend"}}`, `{"message":"Expected maxLength: 32000, actual: 51234"}`,
		`{"error":{"message":"This request is not allowed by a policy","request_id":"8d"}}`,
	}
}
