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
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
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

// difference is how a list of texts differs from the list that is wanted. All texts of a list
// that is wanted are different.
type difference struct {
	missing, doubled, disordered []string
	strange                      []string // in no list
}

// differ compares lists of texts.
func differ(want, got []string) difference {
	var d difference
	place, times := map[string]int{}, map[string]int{}
	for i, text := range want {
		place[text] = i
	}
	last := -1
	for _, text := range got {
		at, wanted := place[text]
		times[text]++
		switch {
		case !wanted:
			d.strange = append(d.strange, text)
		case times[text] > 1:
			d.doubled = append(d.doubled, text)
		case at < last:
			d.disordered = append(d.disordered, text)
		default:
			last = at
		}
	}
	for _, text := range want {
		if times[text] == 0 {
			d.missing = append(d.missing, text)
		}
	}
	return d
}

func (d *difference) add(more difference) {
	d.missing = append(d.missing, more.missing...)
	d.doubled = append(d.doubled, more.doubled...)
	d.disordered = append(d.disordered, more.disordered...)
	d.strange = append(d.strange, more.strange...)
}

// counts are the cells of a table.
func (d *difference) counts() string {
	return fmt.Sprintf("%d\t%d\t%d\t%d", len(d.missing), len(d.doubled), len(d.disordered), len(d.strange))
}

// syncResult is what the two sides have.
type syncResult struct {
	inSlack, onWeb   int // messages of people
	answers, posts   int
	streams          int
	marked           int // posts of attempts that were lost
	loops            []string
	unknown          []core.SlackPost
	toSession, toWeb difference // messages of Slack in the session; of the web likewise
	toThread         difference // of the session in the thread
}

// discarded is what the thread shows of an attempt that was lost.
const discarded = "This answer was interrupted. Another attempt follows."

// check compares each thread with its session.
func (s *slackSync) check() {
	s.t.Helper()
	var r syncResult
	must.Do(s.t, s.database.Gorm.WithContext(s.t.Context()).Where("state = 'unknown'").Find(&r.unknown).Error)
	for _, th := range s.threads {
		th.compare(&r)
	}
	s.logTable(&r)
	for side, d := range map[string]difference{"from Slack in the session": r.toSession, "from the web in the session": r.toWeb, "of the session in the thread": r.toThread} {
		if len(d.missing)+len(d.doubled)+len(d.disordered)+len(d.strange) > 0 {
			s.t.Errorf("messages %s: missing %q, doubled %q, out of order %q, unexplained %q", side, d.missing, d.doubled, d.disordered, d.strange)
		}
	}
	if len(r.loops) > 0 {
		s.t.Errorf("posts of Bobbin that came back as users' messages: %q", r.loops)
	}
	compare.Equal(s.t, "answers", r.inSlack+r.onWeb, r.answers)
}

// compare compares the thread with its session.
func (th *syncThread) compare(r *syncResult) {
	th.t.Helper()
	log := must.Get(repositories.NewMessages(th.database.Gorm).GetMessagesAfter(th.t.Context(), core.Tenant{Owner: core.LocalOwner}, th.session, ""))(th.t)
	var fromSlack, fromWeb, shown, posts []string
	for _, m := range log {
		text := normalize(m.Content)
		switch {
		case m.Role == core.RoleUser && m.Source == core.SourceSlack:
			fromSlack = append(fromSlack, text)
		case m.Role == core.RoleUser:
			fromWeb, shown = append(fromWeb, text), append(shown, text)
		case m.Role == core.RoleAssistant && text != "" && len(m.ToolCalls) == 0:
			shown = append(shown, text)
			r.answers++
		}
	}
	for _, m := range th.ws.Posts(th.channel) {
		text := normalize(m.Markdown())
		if text == discarded {
			r.marked++
			continue
		}
		if m.Stream != nil {
			r.streams++
		}
		if m.Stream != nil && m.Stream.Open {
			text = "a stream that is open: " + text
		}
		posts = append(posts, text)
	}
	toSession := differ(th.inSlack, fromSlack)
	toSession.strange = slices.DeleteFunc(toSession.strange, func(text string) bool {
		loop := slices.Contains(posts, text)
		if loop {
			r.loops = append(r.loops, text)
		}
		return loop
	})
	toThread := differ(shown, posts)
	th.excuseUnknown(&toThread, log, r.unknown)
	r.toSession.add(toSession)
	r.toWeb.add(differ(th.onWeb, fromWeb))
	r.toThread.add(toThread)
	r.inSlack, r.onWeb, r.posts = r.inSlack+len(th.inSlack), r.onWeb+len(th.onWeb), r.posts+len(posts)
}

// excuseUnknown leaves out messages whose post is in the state "unknown": these are listed.
func (th *syncThread) excuseUnknown(d *difference, log []core.Message, unknown []core.SlackPost) {
	d.missing = slices.DeleteFunc(d.missing, func(text string) bool {
		return slices.ContainsFunc(unknown, func(p core.SlackPost) bool {
			return slices.ContainsFunc(log, func(m core.Message) bool { return string(m.ID) == p.ItemID && normalize(m.Content) == text })
		})
	})
}

// logTable prints what was done and found.
func (s *slackSync) logTable(r *syncResult) {
	s.t.Helper()
	limited, lost, failed := 0, 0, 0
	for _, c := range s.Calls("") {
		switch {
		case c.Lost:
			lost++
		case c.Error == "429":
			limited++
		case c.Error == "502":
			failed++
		}
	}
	attempts := 0
	deliveries := s.Deliveries()
	for _, d := range deliveries {
		attempts += len(d.Attempts)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d threads, %d processes, %s: %d messages in Slack, %d on the web, %d answers, %d posts, %d of them streamed\n",
		len(s.threads), len(s.bobbins), time.Since(s.began).Round(time.Second), r.inSlack, r.onWeb, r.answers, r.posts, r.streams)
	fmt.Fprintf(&b, "kill -9: %d; 429: %d; answers of Slack lost: %d; 502: %d; events: %d in %d requests, answers to %d of them lost; attempts marked as interrupted: %d\n\n",
		s.kills, limited, lost, failed, len(deliveries), attempts, s.lost.Load(), r.marked)
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\tmissing\tdoubled\tout of order\tunexplained")
	fmt.Fprintf(table, "messages of Slack in the session\t%s\n", r.toSession.counts())
	fmt.Fprintf(table, "messages of the web in the session\t%s\n", r.toWeb.counts())
	fmt.Fprintf(table, "messages of the session in the thread\t%s\n", r.toThread.counts())
	_ = table.Flush() // to memory
	fmt.Fprintf(&b, "\nloops: %d\nposts in the state unknown: %d\n", len(r.loops), len(r.unknown))
	for _, p := range r.unknown {
		fmt.Fprintf(&b, "  session %s, %s, part %d: %s\n", p.SessionID, p.ItemID, p.Part, p.Error)
	}
	s.t.Logf("\n%s", b.String())
}
