package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/db"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// slackWorld is a fake Slack and the Bobbins that are installed there, behind a load balancer.
type slackWorld struct {
	*fakeslack.Server
	*balancer

	t        *testing.T
	ws       *fakeslack.Workspace
	database *db.DB
	model    *provider.Server
	kills    int
}

// newSlackWorld starts everything, with so many Bobbins on the database.
func newSlackWorld(t *testing.T, p place, bobbins int, slack fakeslack.Options, model provider.Options) *slackWorld {
	t.Helper()
	w := &slackWorld{t: t, balancer: &balancer{}, model: apptest.NewProvider(t, model), Server: must.Get(fakeslack.New(slack))(t)}
	t.Cleanup(func() { _ = w.Server.Close() })
	w.ws = w.AddWorkspace("acme")
	token := w.ws.Install()
	var clusters []string
	for n := range bobbins {
		clusters = append(clusters, process.FreeAddressOf(t, fmt.Sprintf("127.0.2.%d", n+1)))
	}
	for n := range bobbins {
		b := newBobbin(t, place{den.Temp(t), p.database}, w.model.URL)
		b.configure(t, fmt.Sprintf("titles: false\nlimits: {shutdown_grace: 1s, runs_per_owner: 100000, runs_per_user: 100000}\n"+
			"slack: {bot_token: %s, signing_secret: signing-secret, api_url: %q}\n", token, w.APIURL()))
		if bobbins > 1 {
			b.configure(t, fmt.Sprintf("nats: {cluster_addr: %q, peers: [%q], secret: hush-hush-hush-hush-hush-hush}\n", clusters[n], clusters[(n+1)%bobbins]))
		}
		b.start(t)
		w.bobbins = append(w.bobbins, b)
	}
	w.database = p.open(t)
	t.Cleanup(func() { _ = w.database.Close() }) // nothing is written
	front := w.serve()
	t.Cleanup(front.Close)
	w.SetURLs(fakeslack.URLsBelow(front.URL))
	return w
}

// restart kills one of the Bobbins, and starts it again after the time.
func (w *slackWorld) restart(away time.Duration) {
	w.t.Helper()
	b := w.bobbins[w.kills%len(w.bobbins)]
	w.kills++
	b.Kill()
	process.Pause(w.t.Context(), away)
	b.start(w.t)
}

// client returns a client of whichever Bobbin is up.
func (w *slackWorld) client() *client.Client {
	w.t.Helper()
	return must.Get(client.New(client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: w.transport()}}))(w.t)
}

// count returns the number that the statement selects.
func (w *slackWorld) count(statement string) (n int) {
	w.t.Helper()
	must.Do(w.t, w.database.Gorm.WithContext(w.t.Context()).Raw(statement).Row().Scan(&n))
	return n
}

// settle waits until everything that was written is handled on both sides.
func (w *slackWorld) settle(limit time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	for {
		if err := w.WaitDelivered(ctx); err != nil {
			w.t.Errorf("Slack's events are not delivered after %s: %v", limit, err)
			return
		}
		inbox := w.count("SELECT COUNT(*) FROM slack_inbox WHERE finished_at IS NULL")
		runs := w.count("SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running', 'waiting')")
		behind := w.count("SELECT COUNT(*) FROM slack_threads WHERE sent_seq < last_seq")
		if inbox+runs+behind == 0 {
			return
		}
		if !process.Pause(ctx, 100*time.Millisecond) {
			w.t.Errorf("after %s: %d items in the inbox, %d runs, %d threads that are behind", limit, inbox, runs, behind)
			return
		}
	}
}

// balancer passes requests to a Bobbin that is up.
type balancer struct {
	bobbins []*bobbin
	lose    float64 // share of Slack's requests whose answer is lost after it was made

	lost atomic.Int64
}

// dial connects to one of the Bobbins.
func (b *balancer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	first := shared.IntN(len(b.bobbins))
	for i := range b.bobbins {
		if addr := b.bobbins[(first+i)%len(b.bobbins)].Door.Addr(); addr != "" {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	return nil, errors.New("every Bobbin is down")
}

func (b *balancer) transport() *http.Transport {
	return &http.Transport{DialContext: b.dial, DisableKeepAlives: true}
}

// errLost stands for an answer that is lost.
var errLost = errors.New("lost")

// serve starts the load balancer for Slack.
func (b *balancer) serve() *httptest.Server {
	return httptest.NewServer(&httputil.ReverseProxy{
		Transport: b.transport(), ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "localhost"}) },
		ModifyResponse: func(*http.Response) error {
			if shared.Float64() < b.lose {
				b.lost.Add(1)
				return errLost
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errLost) {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	})
}
