package repositories_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/golden"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// ranked returns the first results of a ranked search.
func (s *store) ranked(t testing.TB, q core.SearchQuery) []core.SearchHit {
	t.Helper()
	q.Sort = core.SortRelevance
	return s.search(t, ann(), q).Items
}

// questions are asked beside corpusQueries.
func questions() []string {
	return append(corpusQueries(), "What did the inspectors say about the pressures of the valve?", "Wer hat die Rechnungen geprüft?", "who lost invoices on Monday", "the of and",
		`zebra "pump"`, "getUserById ERR_CONN_RESET zebras", "紫色的大象在哪里", "pump -the")
}

// The order and the scores of a ranked search are the same on both databases, where all
// entries are read and where few are.
func TestSearchRanksTheSame(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		s.fill(t, 800)
		var b strings.Builder
		for _, text := range questions() {
			for name, search := range []*repositories.Search{repositories.NewSearch(s.Gorm), repositories.NewSmallSearch(s.Gorm)} {
				page, err := search.Messages(t.Context(), ann(), core.SearchQuery{Text: text, PageQuery: core.PageQuery{Limit: 7}})
				must.True(t, err == nil, "%s: %v", text, err)
				fmt.Fprintf(&b, "%s\n  %s: %d:", text, []string{"all", "few"}[name], *page.Total)
				for _, h := range page.Items {
					fmt.Fprintf(&b, " %s#%d %.3f", h.SessionTitle, h.Seq, h.Score)
				}
				if b.WriteString("\n"); len(page.Items) > 0 {
					fmt.Fprintf(&b, "    %s\n", marked(page.Items[0]))
				}
			}
		}
		golden.Check(t, "testdata/search_ranked.golden", b.String())
	})
}

// Words are optional, the rare ones count more, stems and neighbors count; what is in quotes
// must be there and -words must not; among equals the newest is first.
func TestSearchRanking(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		texts := []string{
			"Hello there", "My sister Clara lives in Turku", "Nice!", "She keeps seven canoes", "The weather is bad", "It rains a lot", "Really bad", "I know",
			"We repaired the pump in the hall", "And then?", "Pumps need seals", "Of course", "The seal came late", "ok", "Die Pumpen haben Dichtungen", "gut", "same words", "x", "y", "z", "same words",
		}
		var messages []core.Message
		for i, text := range texts {
			messages = append(messages, core.Message{Role: []core.Role{core.RoleUser, core.RoleAssistant}[i%2], Content: text, Author: []string{"Ann", "Ben"}[i/8%2]})
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		for _, tt := range []struct {
			name  string
			q     core.SearchQuery
			first []int64
		}{
			{"a question", core.SearchQuery{Text: "How many canoes does the sister of Ann have?"}, []int64{2, 4}},
			{"beside two words", core.SearchQuery{Text: "sister canoes"}, []int64{2, 4, 3}},
			{"stems", core.SearchQuery{Text: "pump"}, []int64{9, 11, 15}},
			{"German", core.SearchQuery{Text: "Pumpe Dichtung"}, []int64{15}},
			{"a phrase", core.SearchQuery{Text: `canoes "is bad"`}, []int64{5}},
			{"not", core.SearchQuery{Text: "bad -rains -really"}, []int64{5}},
			{"a role", core.SearchQuery{Text: "canoes pump", Role: core.RoleAssistant}, []int64{4}},
			{"an author", core.SearchQuery{Text: "pump", Author: "Ben"}, []int64{9, 11, 15}},
			{"nobody", core.SearchQuery{Text: "pump", Author: "Cid"}, nil},
			{"equals", core.SearchQuery{Text: "same words"}, []int64{21, 17}},
			{"another agent", core.SearchQuery{Text: "pump", Agent: "other"}, nil},
			{"later", core.SearchQuery{Text: "pump", After: time.Now().Add(time.Hour)}, nil},
			{"stop words", core.SearchQuery{Text: "of the"}, []int64{12}},
		} {
			for scope, session := range map[string]core.SessionID{"session": id, "owner": ""} {
				tt.q.SessionID = session
				var got []int64
				for _, h := range s.ranked(t, tt.q) {
					got = append(got, h.Seq)
				}
				compare.True(t, len(got) >= len(tt.first) && (tt.first != nil || len(got) == 0) && slices.Equal(got[:len(tt.first)], tt.first), "%s in the %s: got %v, want %v first", tt.name, scope, got, tt.first)
			}
		}
	})
}

// Pages of a ranked search neither repeat nor omit anything while messages come in, wherever
// the entries are chosen.
func TestRankedPagesAreStable(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		add := func(n int, text string) {
			t.Helper()
			var messages []core.Message
			for i := range n {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: fmt.Sprintf(text, i%7, i)})
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		}
		add(200, "valve%d and pump%d")
		for name, search := range map[string]*repositories.Search{"all": repositories.NewSearch(s.Gorm), "few": repositories.NewSmallSearch(s.Gorm)} {
			read := func(limit int, then func()) []core.MessageID {
				var got []core.MessageID
				for q := (core.SearchQuery{Text: "valve3 valve5 pump7", PageQuery: core.PageQuery{Limit: limit}}); ; then() {
					page := must.Get(search.Messages(t.Context(), ann(), q))(t)
					for page.Indexing { // on a loaded machine
						page = must.Get(search.Messages(t.Context(), ann(), q))(t)
					}
					for _, h := range page.Items {
						got = append(got, h.MessageID)
					}
					if page.NextCursor == nil {
						return got
					}
					q.Cursor = *page.NextCursor
				}
			}
			whole := read(200, func() {})
			paged := read(6, func() { add(3, "valve%d is new, pump%d") })
			diff := cmp.Diff(whole, paged)
			compare.True(t, diff == "" && len(whole) >= 12, "%s: %d results (-one page +pages):\n%s", name, len(whole), diff)
		}
	})
}

// Of messages that fit equally well, those by a person whom the question names come first, and
// those of a day that it names.
func TestRankedSearchByMentions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, day := s.session(t).ID, time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
		messages := []core.Message{}
		for i, author := range []string{"", "Ann", "Ben", "Cid"} {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: "The canoe is dry.", Author: author, CreatedAt: day.AddDate(0, 0, 3*i)})
			for range 5 {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: "Good.", Author: author, CreatedAt: day.AddDate(0, 0, 3*i)})
			}
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		for question, want := range map[string]int64{
			"the canoe":                           19, // the newest of equals
			"What did Ann say about the canoe?":   7,
			"Ben's canoe":                         13,
			"the canoe on 19 January 2026":        19,
			"Ann's canoe on January 13, 2026":     7,
			"Was sagte Cid am 19. Januar 2026 zu": 19,
		} {
			got := s.ranked(t, core.SearchQuery{Text: question + " canoe", SessionID: id})
			compare.True(t, len(got) != 0 && got[0].Seq == want, "%s: got %v first, want message %d", question, got, want)
		}
	})
}

// recallTalk is a conversation with questions, in the shape of ../shared/data.
type recallTalk struct {
	ID       string
	Messages []struct{ ID, Text string }

	Questions []struct {
		Question string
		Evidence []string
	}
}

// What the ranked search finds of conversations with questions, the question as query: the
// share of questions with a message of the evidence among the first 5 and 20 results, and
// among them with two messages on each side; as they are, and with an answer of 30 messages of
// another conversation behind every second message. `make show-recall` passes the data.
func TestShowRankedRecall(t *testing.T) {
	path := os.Getenv("BOBBIN_RECALL_DATA")
	if path == "" {
		t.Skip("set BOBBIN_RECALL_DATA to a file of conversations with questions, or use make show-recall")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("no data: %v", err)
	}
	var talks []recallTalk
	must.Do(t, json.Unmarshal(raw, &talks))
	for name, c := range map[string]struct {
		answers int // messages in an answer between every two
		least   []float64
	}{"short messages": {0, []float64{73, 85, 83, 92}}, "long answers": {30, []float64{46, 66, 78, 87}}} {
		t.Run(name, func(t *testing.T) { showRankedRecall(t, talks, c.answers, c.least) })
	}
}

func showRankedRecall(t *testing.T, talks []recallTalk, answers int, floors []float64) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		asked, found, took := 0, [4]int{}, time.Duration(0)
		for n, talk := range talks {
			id := s.session(t).ID
			seqs := map[string]int64{}
			var messages []core.Message
			for i, m := range talk.Messages {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: m.Text})
				seqs[m.ID] = int64(len(messages))
				if answers > 0 && i%2 == 1 {
					var answer strings.Builder
					other := talks[(n+1)%len(talks)].Messages
					for k := range answers {
						answer.WriteString(other[(i*answers+k)%len(other)].Text + " ")
					}
					messages = append(messages, core.Message{Role: core.RoleAssistant, Content: answer.String()})
				}
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
			for _, q := range talk.Questions {
				q.Evidence = slices.DeleteFunc(q.Evidence, func(id string) bool { return seqs[id] == 0 })
				if len(q.Evidence) == 0 {
					continue
				}
				asked++
				began := time.Now()
				page := s.search(t, ann(), core.SearchQuery{Text: q.Question, SessionID: id, Sort: core.SortRelevance, PageQuery: core.PageQuery{Limit: 20}})
				took += time.Since(began)
				for i, n := range []int{5, 20} {
					for k, reach := range []int64{0, 2} {
						if slices.ContainsFunc(page.Items[:min(n, len(page.Items))], func(h core.SearchHit) bool {
							return slices.ContainsFunc(q.Evidence, func(id string) bool { return max(h.Seq-seqs[id], seqs[id]-h.Seq) <= reach })
						}) {
							found[2*k+i]++
						}
					}
				}
			}
		}
		share := func(i int) string { return fmt.Sprintf("%.1f %%", 100*float64(found[i])/float64(asked)) }
		t.Logf("%d questions: first 5 %s, first 20 %s; quoted with two messages before and after: %s, %s; %s each",
			asked, share(0), share(1), share(2), share(3), (took / time.Duration(asked)).Round(time.Microsecond))
		for i, least := range floors {
			if 100*float64(found[i])/float64(asked) < least {
				t.Errorf("figure %d: got %s, want %.0f %%", i+1, share(i), least)
			}
		}
	})
}

// corpusSession is how many messages a session of the corpus has.
const corpusSession = 100

// corpus makes up messages in English, German, Chinese and code, the same ones
// every time. One goroutine owns it.
type corpus struct {
	rand *rand.Rand
	n    int
}

func (c *corpus) pick(words string) string {
	list := strings.Fields(words)
	return strings.ReplaceAll(list[c.rand.IntN(len(list))], "_", " ")
}

// next returns the next message.
func (c *corpus) next() core.Message {
	texts := []func() string{c.english, c.german, c.chinese, c.code}
	text := texts[c.n/corpusSession%len(texts)]
	var b strings.Builder
	for range 3 + c.rand.IntN(8) {
		b.WriteString(text())
	}
	c.n++
	if c.n%97 == 0 {
		list := []string{
			"ERR_CONN_RESET", "zebra crossing", "Zimmerpflanze", "紫色的大象", "kubectl rollout restart", "C'est déjà l'été", "Фильтр насоса",
			"ポンプ室の温度", "🎉 done", "ｆｕｌｌ－ｗｉｄｔｈ", "café au lait",
		}
		b.WriteString(list[c.n/97%len(list)])
	}
	roles := []core.Role{core.RoleUser, core.RoleAssistant, core.RoleUser, core.RoleTool, core.RoleAssistant}
	return core.Message{
		Role: roles[c.n%len(roles)], Content: strings.TrimSpace(b.String()),
		CreatedAt: time.Date(2024, 1, 1, 0, 0, c.n, 0, time.UTC),
	}
}

func (c *corpus) english() string {
	return fmt.Sprintf("%s %s %s %d %s. ",
		c.pick("The_pump Our_second_supplier The_night_shift A_visitor_from_Graz The_new_controller Somebody_from_accounting The_inspector"),
		c.pick("reported lost measured replaced asked_for could_not_explain wrote_down repaired"),
		c.pick("the_pressure_of_valve liters_of_coolant invoice the_reading_of_sensor order the_temperature_in_hall"), c.rand.IntN(9000),
		c.pick("before_the_inspection_began and_nobody_noticed_until_Monday although_the_manual_forbids_it because_the_seal_was_worn_out"))
}

func (c *corpus) german() string {
	return fmt.Sprintf("%s %s %s %d %s. ",
		c.pick("Die_Pumpe Der_Lieferant Die_Nachtschicht Der_Prüfer Das_Steuergerät Die_Buchhaltung Die_Straßenmeisterei"),
		c.pick("meldete verlor maß ersetzte prüfte vergaß"),
		c.pick("den_Druck_am_Ventil die_Kühlflüssigkeit die_Rechnung den_Messwert die_Bestellung die_Größe_der_Öffnung"), c.rand.IntN(9000),
		c.pick("vor_der_Prüfung obwohl_es_verboten_ist weil_die_Dichtung_verschlissen_war und_niemand_merkte_es"))
}

func (c *corpus) chinese() string {
	return c.pick("今天早上 昨天夜里 检查之前 星期一") + c.pick("三号车间的水泵 新的控制器 第二家供应商 夜班的同事 来访的检查员") +
		c.pick("报告了压力异常 没有解释读数的偏差 更换了磨损的密封件 记录了传感器的数值 订购了冷却液") + c.pick("。 ！ ，编号") + fmt.Sprint(c.rand.IntN(9000)) + "。"
}

func (c *corpus) code() string {
	return fmt.Sprintf("%s(%s_id=%d) // %s\n\t%s %s: %s at %s:%d\n",
		c.pick("getUserById loadSession parseHTTPHeader writeMessages openDatabase renewLease"), c.pick("user session message run"), c.rand.IntN(9000),
		c.pick("TODO FIXME see_the_docs returns_early"), c.pick("WARN ERROR INFO"), c.pick("E11000 ORA-00942 0x80070005 EPERM SQLSTATE-42P01"),
		c.pick("connection_refused duplicate_key table_not_found lease_lost"), c.pick("app/db/repositories/messages.go app/runs/service.go cmd/main.go src/index.ts"), c.rand.IntN(900))
}

// corpusKey names a message of the corpus.
func corpusKey(session, seq int) string { return fmt.Sprintf("%d#%d", session, seq) }

// fill stores n messages of the corpus for ann and returns their texts by key.
func (s *store) fill(t testing.TB, n int) map[string]string {
	t.Helper()
	c, texts := &corpus{rand: seed.Fixed(7, 7)}, map[string]string{}
	for i := range n / corpusSession {
		session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Title: fmt.Sprint(i)}))(t)
		messages := make([]core.Message, corpusSession)
		for k := range messages {
			messages[k] = c.next()
			texts[corpusKey(i, k+1)] = messages[k].Content
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, session.ID, messages))
		s.index(t)
	}
	return texts
}

// corpusQueries are the fixed questions.
func corpusQueries() []string {
	return []string{
		"pump", "the", "the pump", "pump valve", "PUMP Pressure", `"pressure of valve"`, `"second supplier" invoice`, `"the pump" -coolant`,
		"supplier -invoice -order", "inspect*", "temperatu* hall", `"could not explain"`, "nobody noticed Monday", "seal 77", "zebra", `"zebra crossing"`,
		"Pumpe", "prüfung", "STRASSENMEISTEREI", "Größe Öffnung", `"Druck am Ventil"`, "Kühlflüssig*", "Lieferant -Rechnung", "Zimmerpflanze", "dichtung verschlissen",
		"水泵", "压力异常", "控制器", "三号车间的水泵报告了压力异常", "泵", "紫色的大象", "供应商 -冷却液", "密封件 传感器", `"夜班的同事"`, "检查员记录",
		"getUserById", "getuser", "user", "HTTP", "session_id", "E11000", "ORA-00942", "00942", "0x80070005", "app/db/repositories/messages.go",
		"repositories", "ERR_CONN_RESET", "conn_reset", `"duplicate key"`, "leas*", "kubectl rollout", "déjà", "насоса", "ポンプ", "🎉", "full-width", "nowhere",
	}
}
