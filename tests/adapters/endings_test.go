package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// whileSaying calls the model and cancels as soon as a delta came.
func whileSaying(ctx context.Context, _ *testing.T, c *caller) outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return c.call(ctx, func(llm.Delta) { cancel() })
}

// within calls the model with a deadline.
func within(limit time.Duration) func(context.Context, *testing.T, *caller) outcome {
	return func(ctx context.Context, _ *testing.T, c *caller) outcome {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return c.call(ctx, nil)
	}
}

func endings() []scenario {
	hang := func(pieces ...piece) func(*stage) {
		return func(s *stage) {
			s.say(pieces...)
			s.hang()
		}
	}
	short := settings{timeouts: providerhttp.Timeouts{Headers: 5 * time.Second, Idle: 7 * time.Second}}
	return []scenario{
		{name: "cancel before the headers", scene: func(s *stage) { s.hang() },
			drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return c.call(ctx, nil)
			}, want: outcome{Kind: llm.KindCanceled, Cause: "canceled"}},
		{name: "cancel before the call", scene: hang(), drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(fmt.Errorf("enough: %w", context.Canceled))
			o := c.call(ctx, nil)
			o.Note = fmt.Sprint(len(c.server.Received()))
			return o
		}, want: outcome{Kind: llm.KindCanceled, Cause: "canceled", Says: "enough", Note: "0"}},
		{name: "cancel in the middle of the text", scene: hang(text("Hel")), drive: whileSaying,
			want: outcome{Text: "Hel", Kind: llm.KindCanceled, Cause: "canceled"}},
		{name: "cancel in the middle of a tool call", scene: hang(begin(0, "a", "f"), args(0, `{"x"`)), drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return c.call(ctx, func(d llm.Delta) {
				if d.ToolCall != nil && d.ToolCall.Arguments != "" {
					cancel()
				}
			})
		}, want: outcome{Calls: `a f {"x"`, Kind: llm.KindCanceled, Cause: "canceled"}},
		{name: "deadline before the headers", scene: func(s *stage) { s.hang() }, drive: within(time.Second),
			want: outcome{Kind: llm.KindCanceled, Cause: "deadline"}},
		{name: "deadline in the middle of the text", scene: hang(text("Hel")), drive: within(time.Second),
			want: outcome{Text: "Hel", Kind: llm.KindCanceled, Cause: "deadline"}},
		{name: "the caller leaves", scene: hang(text("a"), text("b")), drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			for d, err := range c.model.Stream(ctx, c.req) {
				if err != nil {
					return seen(llm.Response{}, err)
				}
				return outcome{Text: d.Text}
			}
			return outcome{}
		}, want: outcome{Text: "a"}},
		{name: "truncated text", scene: play(text("Hel")), want: outcome{Text: "Hel", Kind: llm.KindTruncated}},
		{name: "truncated tool call", scene: play(begin(0, "a", "f"), args(0, `{"x"`)), want: outcome{Calls: `a f {"x"`, Kind: llm.KindTruncated}},
		{name: "truncated before anything was said", scene: play(piece{ping: true}), want: outcome{Kind: llm.KindTruncated}},
		{name: "connection lost in the middle", scene: func(s *stage) {
			s.say(text("Hel"))
			panic(http.ErrAbortHandler)
		}, want: outcome{Text: "Hel", Kind: llm.KindTruncated}},
		{name: "half an event", scene: func(s *stage) {
			s.say(text("Hel"))
			s.raw(`data: {"type":"content_block_delta","choi` + "\n\n")
		}, want: outcome{Text: "Hel", Kind: llm.KindTruncated}},
		{name: "an error in the middle of the stream", scene: play(text("Hel"), piece{failure: "overloaded_error"}),
			want: outcome{Text: "Hel", Kind: llm.KindOverloaded, Says: "it failed"}},
		{name: "an error at the beginning of the stream", scene: play(piece{failure: "rate_limit_error"}),
			want: outcome{Kind: llm.KindRateLimit, Says: "it failed"}},
		{name: "no network", scene: play(), drive: func(ctx context.Context, t *testing.T, c *caller) outcome {
			c.server.Transport.DialContext = nil
			broken := llmtest.Transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host " + key) })
			m := must.Get(c.server.dialect.open(broken, settings{}))(t)
			c.model = m
			return c.call(ctx, nil)
		}, want: outcome{Kind: llm.KindNetwork, Says: "was not reached: no route to host"}},
		{name: "a web page instead of an answer", scene: func(s *stage) { s.raw("<html>Sign in</html>") },
			want: outcome{Kind: llm.KindUnknown, Says: "is the base_url right?"}},
		{name: "a huge line", scene: func(s *stage) {
			s.say(text("a"))
			s.raw("data: " + strings.Repeat("x", providerhttp.MaxLine+10))
		}, want: outcome{Text: "a", Kind: llm.KindUnknown, Says: "larger than 8 MiB"}},
		{name: "no headers in time", with: short, scene: func(s *stage) { s.hang() },
			want: outcome{Kind: llm.KindTimeout, Says: "no answer within 5s"}},
		{name: "a stream that stands still", with: short, scene: hang(text("Hel")),
			want: outcome{Text: "Hel", Kind: llm.KindTimeout, Says: "nothing more came within 7s"}},
		{name: "a slow stream", with: short, scene: func(s *stage) {
			for range 10 {
				s.say(text("."))
				s.pause(6 * time.Second)
			}
			s.say(stop)
		}, want: outcome{Text: "..........", Finish: core.FinishStop}},
	}
}

func refusals() []scenario {
	refuse := func(status int, word, sentence string, header ...string) func(*stage) {
		return func(s *stage) { s.refuse(status, word, sentence, header...) }
	}
	refused := func(status int, kind llm.ErrorKind, says string) outcome {
		return outcome{Kind: kind, Status: status, Says: says}
	}
	limited := refused(429, llm.KindRateLimit, "slow down")
	limited.RetryAfter = 17 * time.Second
	dated := refused(429, llm.KindRateLimit, "slow down")
	dated.RetryAfter = 90 * time.Second
	tooLong := refused(400, llm.KindContextLength, "")
	tooLong.Limit, tooLong.Requested = 8_192, 9_000
	return []scenario{
		{name: "400", scene: refuse(400, "invalid_request_error", "no such field"), want: refused(400, llm.KindInvalid, "no such field")},
		{name: "401", scene: refuse(401, "authentication_error", "wrong key "+key), want: refused(401, llm.KindAuth, "wrong key ***")},
		{name: "403", scene: refuse(403, "permission_error", "not for you"), want: refused(403, llm.KindAuth, "not for you")},
		{name: "404", scene: refuse(404, "not_found_error", "no such model"), want: refused(404, llm.KindNotFound, "no such model")},
		{name: "413", scene: refuse(413, "request_too_large", "too many bytes"), want: refused(413, llm.KindContextLength, "too many bytes")},
		{name: "429 with Retry-After", scene: refuse(429, "rate_limit_error", "slow down", "Retry-After", "17"), want: limited},
		{name: "429 with a date", scene: func(s *stage) {
			s.refuse(429, "rate_limit_error", "slow down", "Retry-After", time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
		}, want: dated},
		{name: "500", scene: refuse(500, "api_error", "broken"), want: refused(500, llm.KindOverloaded, "broken")},
		{name: "529", scene: refuse(529, "overloaded_error", "busy"), want: refused(529, llm.KindOverloaded, "busy")},
		{name: "302", scene: refuse(302, "", "", "Location", "http://elsewhere.test/"), want: refused(302, llm.KindInvalid, "")},
		{name: "context length with its limit", scene: func(s *stage) { s.refuse(400, "invalid_request_error", s.dialect.tooLong) }, want: tooLong},
		{name: "repeated by us alone", scene: func(s *stage) {
			if s.n < 3 {
				s.refuse(529, "overloaded_error", "busy")
				return
			}
			s.say(text("at last"), stop)
		}, drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			c.model = llm.WithRetry(c.model, slog.New(slog.DiscardHandler))
			return c.call(ctx, nil)
		}, want: outcome{Text: "at last", Finish: core.FinishStop, Requests: 3}},
	}
}
