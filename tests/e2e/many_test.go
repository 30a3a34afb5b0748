package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// Streams of one owner, from a model that says one word and then nothing until each stream has its word
// or has been told that it waits: nothing is refused, and each gets its word in the end. The short form
// has places for half of them, the long one the default limits.
func TestShowMany(t *testing.T) {
	t.Parallel()
	streams := apptest.ChooseSize(64, 2000)
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		all := make(chan struct{}) // closed when each stream has its first word, or knows that it waits
		p := apptest.NewProvider(t, provider.Options{Fault: func(w http.ResponseWriter, _ provider.Asked) bool {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Well,\"},\"finish_reason\":null}]}\n\n")
			_ = http.NewResponseController(w).Flush() // who has gone is of no interest
			<-all
			fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return true
		}})
		s := newManyServer(t, url, p, streams/2)
		before, cpu, began := s.memory(t), s.cpu(t), time.Now()
		var mu sync.Mutex
		var first []time.Duration // until the first word
		var queued, told int
		var open sync.WaitGroup
		release := sync.OnceFunc(func() { close(all) })
		t.Cleanup(release) // a stream that failed keeps the others waiting
		slots := make(chan struct{}, 64)
		for range streams {
			open.Go(func() {
				slots <- struct{}{}
				id := s.session(t.Context(), t)
				<-slots
				asked, known, waits := time.Now(), false, false
				err := streamTurn(t.Context(), s.http, s.url, id, "Speak.", func(e core.EventType) {
					mu.Lock()
					defer mu.Unlock()
					switch {
					case e == core.EventRunQueued:
						queued, waits = queued+1, true
						told++
					case e == core.EventMessageDelta && !known:
						known, first = true, append(first, time.Since(asked))
						if !waits {
							told++
						}
					}
					if told == streams {
						release()
					}
				})
				if err != nil {
					t.Error(err)
					release()
				}
			})
		}
		<-all
		held, took := s.memory(t), time.Since(began)
		mu.Lock()
		spoken := len(first)
		mu.Unlock()
		open.Wait()
		slices.Sort(first)
		fig := apptest.NewTable("%d slow streams of one owner (%s)", streams, t.Name())
		fig.AddRow("streams with words at the same time", spoken, fmt.Sprintf("after %.1f s", took.Seconds()))
		fig.AddRow("queued first", queued)
		fig.AddRow("first word", fmt.Sprintf("p50 %v, max %v", first[len(first)/2].Round(time.Millisecond), first[len(first)-1].Round(time.Millisecond)))
		fig.AddRow("RSS", before, held, fmt.Sprintf("%.0f KiB a stream", float64(held-before)/1024/float64(streams)))
		fig.AddRow("CPU", fmt.Sprintf("%.1f s", s.cpu(t)-cpu))
		fig.Log(t)
		if len(first) != streams || !apptest.IsLong() && queued != streams-s.places {
			t.Errorf("%d of %d streams got a word, %d were told that they wait; want all, and all but %d", len(first), streams, queued, s.places)
		}
	})
}

// cpu returns the seconds of CPU that the server has taken; 0 if it is in this process.
func (s *manyServer) cpu(t *testing.T) float64 {
	t.Helper()
	if !apptest.IsLong() {
		return 0
	}
	raw := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid)))(t)
	var user, system float64
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	must.Get(fmt.Sscan(fields[11]+" "+fields[12], &user, &system))(t)
	return (user + system) / 100
}

// manyServer is a Bobbin with many streams: in this process, or one of its own.
type manyServer struct {
	url    string
	client *client.Client
	http   *http.Client
	pid    int
	places int // for runs; of a process of its own, as by default
}

// newManyServer starts one.
func newManyServer(t *testing.T, url string, p *provider.Server, places int) *manyServer {
	t.Helper()
	s := &manyServer{pid: os.Getpid(), places: places, http: &http.Client{Transport: process.PatientTransport{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}}
	t.Cleanup(s.http.CloseIdleConnections)
	if apptest.IsLong() {
		s.process(t, url, p)
	} else {
		h := apptest.New(t, url, apptest.WithModel("house", 8_000_000, 2048, p), apptest.WithGrace(time.Millisecond), // nothing is summarized beside it
			func(c *config.Config) { c.Limits.ConcurrentRuns = places })
		s.url = h.URL
	}
	var err error
	if s.client, err = client.New(client.Options{URL: s.url, HTTP: s.http}); err != nil {
		t.Fatal(err)
	}
	return s
}

// process builds Bobbin and starts it.
func (s *manyServer) process(t *testing.T, url string, p *provider.Server) {
	t.Helper()
	den := must.Get(process.Open("many"))(t)
	t.Cleanup(den.Close)
	server := den.NewServer(t, den.Program(t, false), den.Temp(t), fmt.Sprintf("default_llm: house\ntitles: false\nlog: {level: warn}\n"+
		"models: [{name: house, provider: openai, base_url: %q, context_window: 8192, max_output_tokens: 2048}]\n", p.URL), "BOBBIN_DATABASE_URL="+url)
	must.Do(t, server.Start(t.Context()))
	t.Cleanup(func() {
		if log, bad := server.ReadLog("ERROR"); t.Failed() || len(bad) > 0 {
			t.Logf("the log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	s.pid, s.url = server.PID(), "http://"+server.Door.Addr()
}

// bytesOf is a number of bytes that says so.
type bytesOf int64

func (b bytesOf) String() string {
	if b < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(b)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20))
}

// memory asks the system what the process takes; 0 if it is not a process of its own.
func (s *manyServer) memory(t *testing.T) bytesOf {
	t.Helper()
	if !apptest.IsLong() {
		return 0
	}
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid)))(t)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatal("the system does not say what the process takes")
	}
	rss := must.Get(strconv.ParseInt(string(found[1]), 10, 64))(t)
	return bytesOf(rss) << 10
}

// session makes a session.
func (s *manyServer) session(ctx context.Context, t *testing.T) core.SessionID {
	t.Helper()
	session := must.Get(client.Call(ctx, s.client, ops.CreateSession, ops.NewSession{}))(t)
	return session.ID
}
