package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
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
	"bobbin/tests/provider"
)

// turnsCell is a conversation with a model at one address, in which the user writes again after a
// pause.
type turnsCell struct {
	policy, place string
	address       string
	window        int
	pause         time.Duration
	server        *provider.Server

	over, gaps int   // turns over a hard limit, and with messages left out that no summary covers
	untrue     int   // contexts shown that are larger than what can be sent, or leave out what no prompt leaves out
	summaries  int64 // calls
}

func (c *turnsCell) name() string {
	return fmt.Sprintf("%s-%s-%d-%d", c.policy, c.place, c.window, c.pause/time.Second)
}

// turnsTime is how long the model takes for an answer, summaryTime for a summary.
const (
	turnsTime   = 50 * time.Millisecond
	summaryTime = 300 * time.Millisecond
)

// A summary that is due is made, wherever the model is and however fast people write: no turn is
// over a hard limit, and nothing is left out that no summary covers. With the policy off no model is asked
// for a summary, every prompt fits, and what it leaves out is counted.
//
// 0.0.0.0 is this machine, too, but no address by which a server would be taken for a local one.
func TestShowTurns(t *testing.T) {
	t.Parallel()
	policies, windows, pauses := []string{"window", "sliding", "off"}, []int{8_192}, []time.Duration{0}
	if apptest.IsLong() {
		policies, windows = []string{"window", "budget", "sliding", "ratio", "off"}, []int{8_192, 16_384}
		pauses = append(pauses, time.Second, 3*time.Second)
	}
	var cells []*turnsCell
	settings := []apptest.Setting{}
	for _, policy := range policies {
		for _, window := range windows {
			for _, pause := range pauses {
				for i, place := range []string{"local", "remote"} {
					c := &turnsCell{policy: policy, place: place, address: []string{"127.0.0.1", "0.0.0.0"}[i], window: window, pause: pause}
					c.server = apptest.NewProvider(t, provider.Options{Window: window, Fault: func(_ http.ResponseWriter, a provider.Asked) bool {
						if a.Summary {
							<-time.After(summaryTime)
						} else {
							<-time.After(turnsTime)
						}
						return false
					}})
					cells = append(cells, c)
					settings = append(settings, c.addModel, apptest.WithAgent(c.name(),
						fmt.Sprintf("name: %s\nsystem_prompt: You answer.\nmodel: %s\ncontext:\n  policy: %s\n", c.name(), c.name(), policy)))
				}
			}
		}
	}
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), settings...)
	turns := apptest.ChooseSize(14, 120)
	for _, pause := range pauses {
		var wait sync.WaitGroup
		atOnce := make(chan struct{}, 4+6*int(pause/time.Second))
		for _, c := range cells {
			if c.pause == pause {
				wait.Go(func() {
					atOnce <- struct{}{}
					defer func() { <-atOnce }()
					c.talk(t, h, turns)
				})
			}
		}
		wait.Wait()
	}
	fig := apptest.NewTable("%d turns: over a hard limit, with messages left out that no summary covers, contexts shown that are not true, summary calls", turns)
	for i, c := range cells {
		fig.AddRow(c.name(), c.over, c.gaps, c.untrue, c.summaries)
		if c.untrue > 0 {
			t.Errorf("%s: %d contexts shown that are not true, want none", c.name(), c.untrue)
		}
		if c.policy == "off" {
			if c.over > 0 || c.gaps == 0 || c.summaries > 0 {
				t.Errorf("%s: %d turns over the window, %d with messages left out, %d summary calls; want 0, some and 0", c.name(), c.over, c.gaps, c.summaries)
			}
			continue
		}
		if c.over > 0 || c.gaps > 0 || c.summaries == 0 {
			t.Errorf("%s: %d turns over a hard limit, %d with gaps, %d summary calls; want 0, 0 and some", c.name(), c.over, c.gaps, c.summaries)
		}
		if remote := cells[i|1]; 10*c.summaries > 13*remote.summaries+20 {
			t.Errorf("%s: %d summary calls, remote %d: want at most 1.3 times as many, and two", c.name(), c.summaries, remote.summaries)
		}
	}
	fig.Log(t)
}

// addModel adds the model of the conversation.
func (c *turnsCell) addModel(cfg *config.Config) {
	cfg.Models = append(cfg.Models, config.Model{
		Name: c.name(), Provider: "openai", BaseURL: strings.Replace(c.server.URL, "127.0.0.1", c.address, 1), ContextWindow: c.window,
	})
	cfg.DefaultLLM = cfg.Models[0].Name
}

// talk has the conversation.
func (c *turnsCell) talk(t *testing.T, h *apptest.Bobbin, turns int) {
	words := apptest.NewWriter(uint64(c.window))
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: c.name()})
	for n := range turns {
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Turn %d. %s", n, words.Sentences(24))})
		r := reported(t, h.Client, got.Run.ID)
		if r.Used > r.Usable || slices.ContainsFunc(r.Triggers, func(s core.TriggerStatus) bool { return s.Name == "unsummarized" && s.Fires }) {
			c.over++
		}
		if r.Coverage.LeftOut > 0 {
			c.gaps++
		}
		for range 2 { // right after the run, and before the next one
			shown, err := client.Call(t.Context(), h.Client, ops.GetContext, ops.InSession{SessionID: id})
			if err != nil {
				t.Errorf("%s, turn %d: %v", c.name(), n, err)
				return
			}
			if shown.Used > shown.Usable || shown.Coverage.LeftOut > r.Coverage.LeftOut && c.policy != "off" {
				t.Logf("%s, turn %d: %d of %d, %d left out, run %d, %v %q", c.name(), n, shown.Used, shown.Usable, shown.Coverage.LeftOut, r.Coverage.LeftOut, shown.Summarizing, shown.Reasons)
				c.untrue++
			}
			<-time.After(c.pause / 2)
		}
	}
	c.summaries = c.server.Summaries()
}
