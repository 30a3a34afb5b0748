package repositories_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

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
