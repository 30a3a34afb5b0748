package blobs_test

import (
	"errors"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/tests/must"
)

// A link ends at its time, by the second.
func TestLinksExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := service(&memory{})
		link := must.Get(s.Link(t.Context(), core.Tenant{Owner: "ann"}, "b", time.Minute))(t)
		address := must.Get(url.Parse(link.URL))(t)
		expires, err := strconv.ParseInt(address.Query().Get("expires"), 10, 64)
		if err != nil || !time.Unix(expires, 0).Equal(link.ExpiresAt) {
			t.Fatalf("got %s, %v", link.URL, err)
		}
		signature := address.Query().Get("signature")
		if _, err := s.Follow(t.Context(), "b", expires, signature); err != nil {
			t.Errorf("a new link: got %v", err)
		}
		time.Sleep(time.Minute)
		var shown *core.Error
		if _, err := s.Follow(t.Context(), "b", expires, signature); !errors.As(err, &shown) || shown.Code != core.CodeLinkExpired {
			t.Errorf("an old link: got %v, want it expired", err)
		}
		if _, err := s.Follow(t.Context(), "c", expires, signature); !errors.As(err, &shown) || shown.Code != "" {
			t.Errorf("another file: got %v, want nothing told of it", err)
		}
		for _, lifetime := range []time.Duration{-1, time.Hour + time.Second} {
			if _, err := s.Link(t.Context(), core.Tenant{Owner: "ann"}, "b", lifetime); !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%s: got %v, want it refused", lifetime, err)
			}
		}
	})
}
