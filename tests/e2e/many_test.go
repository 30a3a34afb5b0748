package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// Streams of one owner at default limits, from a model that says one word and then nothing until all
// have theirs: each gets it, nothing is refused, and what is beyond the limit is told that it waits.
func TestShowMany(t *testing.T) {
	t.Parallel()
	streams := apptest.ChooseSize(64, 2000)
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		all := make(chan struct{}) // closed when each stream has its first word
		p := apptest.NewProvider(t, provider.Options{Fault: func(w http.ResponseWriter, _ provider.Asked) bool {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Well,\"},\"finish_reason\":null}]}\n\n")
			_ = http.NewResponseController(w).Flush() // who has gone is of no interest
			<-all
			fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return true
		}})
		s := newManyServer(t, url, p)
		before, cpu, began := s.memory(t), s.cpu(t), time.Now()
		var mu sync.Mutex
		var first []time.Duration // until the first word
		var queued int
		var open sync.WaitGroup
		release := sync.OnceFunc(func() { close(all) })
		t.Cleanup(release) // a stream that failed keeps the others waiting
		slots := make(chan struct{}, 64)
		for range streams {
			open.Go(func() {
				slots <- struct{}{}
				id := s.session(t.Context(), t)
				<-slots
				asked, known := time.Now(), false
				err := streamTurn(t.Context(), s.http, s.url, id, "Speak.", func(e core.EventType) {
					mu.Lock()
					defer mu.Unlock()
					switch {
					case e == core.EventRunQueued:
						queued++
					case e == core.EventMessageDelta && !known:
						known = true
						if first = append(first, time.Since(asked)); len(first) == streams {
							release()
						}
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
		open.Wait()
		slices.Sort(first)
		fig := apptest.NewTable("%d slow streams of one owner at default limits (%s)", streams, t.Name())
		fig.AddRow("streams with words at the same time", len(first), fmt.Sprintf("after %.1f s", took.Seconds()))
		fig.AddRow("queued first", queued)
		fig.AddRow("first word", fmt.Sprintf("p50 %v, max %v", first[len(first)/2].Round(time.Millisecond), first[len(first)-1].Round(time.Millisecond)))
		fig.AddRow("RSS", before, held, fmt.Sprintf("%.0f KiB a stream", float64(held-before)/1024/float64(streams)))
		fig.AddRow("CPU", fmt.Sprintf("%.1f s", s.cpu(t)-cpu))
		fig.Log(t)
		if len(first) != streams {
			t.Errorf("%d of %d streams got a word while all were open", len(first), streams)
		}
	})
}

// cpu returns the seconds of CPU that the server has taken; 0 if it is in this process.
func (s *manyServer) cpu(t *testing.T) float64 {
	t.Helper()
	if !apptest.IsLong() {
		return 0
	}
	raw := apptest.Must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid)))(t)
	var user, system float64
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	must.Get(fmt.Sscan(fields[11]+" "+fields[12], &user, &system))(t)
	return (user + system) / 100
}
