package story

import (
	"encoding/json"
	"fmt"
	"strings"
)

// incident is a night on call: whole log files and tables come back from tools, and
// what matters is a line in the middle of them.
func incident() []byte {
	t := tell(53)
	t.system("You are the on-call assistant of a team that runs an order platform on Kubernetes. Look at data before you guess, quote the line that proves it, and propose the smallest safe step.")
	t.user("It's 02:14 and I was just paged: checkout fails for some customers. I'm ⟦name|Rosalind Achebe|Who was paged that night?⟧, incident ⟦fact|INC-30771|What is the number of the incident?⟧, and the rule tonight is: ⟦fact|no restarts of ledger-db before 06:00|Which rule holds while the batch is at work?⟧, the batch is running. Start wherever you like.")
	t.uses("I begin with the pods and the errors of the last quarter of an hour.",
		use{"kubectl", map[string]any{"command": "⟦command|kubectl get pods -n orders -o wide|How did you list the containers?⟧"}, t.pods()},
		use{"logs", map[string]any{"service": "checkout", "since": "15m"}, t.logFile("checkout", 420, "⟦error|rpc error: code = Unavailable desc = connection to ledger-db-2.ledger:5432 refused|What did the log of checkout say when customers could not pay?⟧")})
	t.assistant("The pods are all up, but checkout cannot reach one replica of the ledger: \"connection to ledger-db-2.ledger:5432 refused\" stands in the middle of the log, and about every third request hits it. Only reads go there. I would take ledger-db-2 out of the read pool, which needs no restart.")
	t.user("Out of the pool how? And is it only that one replica?")
	t.uses("", use{"sql", map[string]any{"query": "⟦command|select application_name, state, replay_lag from pg_stat_replication|How did you see how far behind the replicas are?⟧"}, t.table(160)},
		use{"metrics", map[string]any{"query": "sum by (pod) (rate(pg_connections_refused_total[5m]))"}, t.series("pg_connections_refused_total", 90)})
	t.assistant("Only that one: the other replicas refuse nothing, and their lag is under a second. It is taken out by a label, without a restart: `kubectl label pod ledger-db-2 -n ledger pool=drain --overwrite`. The service selects pool=read.")
	t.user("Do it.")
	t.uses("", use{"kubectl", map[string]any{"command": "⟦command|kubectl label pod ledger-db-2 -n ledger pool=drain --overwrite|How was the broken replica taken out?⟧"}, "pod/ledger-db-2 labeled"})
	t.assistant("Labeled. I look at the error rate for two minutes before I say that it is over.")
	for _, h := range hunches() {
		t.user(h.ask)
		t.uses("", h.uses(t)...)
		if h.then != "" {
			t.uses("That is not enough to be sure. I look at the other side of it.", use{"logs", map[string]any{"service": h.then, "since": "2h"}, t.logFile(h.then, h.lines, "⟦error|"+h.proof+"|"+h.proofAsk+"⟧")})
		}
		t.assistant(h.answer)
	}
	t.user("It's 05:40. Write the timeline for the handover to ⟦name|Ikram|Who gets the handover?⟧, with the incident number, the replica that refused, and what must not be done before six.")
	t.assistant("Timeline for the handover:\n\n- 02:14 page: checkout fails for about a third of the customers.\n- 02:31 one replica of the ledger refuses connections; taken out of the read pool by a label.\n- 03:05 the retry storm of the cart is stopped by a limit.\n- 04:20 the certificate of the event bridge is renewed by hand.\n- 05:10 queues are empty again.\n\nThe rule of the night still holds until six. The exact lines are in the outputs above; I can look each one up.")
	return t.out.Bytes()
}

// hunch is a question of the night, and where its answer is found.
type hunch struct {
	ask      string
	uses     func(*teller) []use
	then     string // a second log
	lines    int
	proof    string
	proofAsk string // the question that the proof answers
	answer   string
}

// hunches are what else was wrong.
func hunches() []hunch {
	return []hunch{
		{"Errors are down but not gone. What is the rest?", func(t *teller) []use {
			return []use{{"logs", map[string]any{"service": "cart", "since": "30m"}, t.logFile("cart", 520, "⟦error|retry budget exhausted: 4096 attempts in 10s for POST /v2/reserve|What did the log of the cart say about trying again?⟧")}}
		}, "", 0, "", "", "The rest is the cart: it retries without pause, 4,096 attempts in ten seconds, and keeps the reservation service down. A limit of 50 a second in ⟦path|deploy/cart/values.yaml|In which file is the limit on repeating set?⟧ under `retry.perSecond` stops that."},
		{"Who owns the cart? And which version is that?", func(*teller) []use {
			return []use{{"kubectl", map[string]any{"command": "⟦command|kubectl get deploy cart -n orders -o json|How did you find out whose service that is?⟧"}, deployment()}}
		}, "", 0, "", "", "It is owned by team basket, on call is ⟦name|Tomasz Wilk|Whom can I wake of the team that owns it?⟧, and the image is ⟦fact|cart:4.18.2-rc1|Which candidate ran in production that night?⟧: a release candidate, which should not be there at all."},
		{"A release candidate in production?! Find out how it came there, but no blame please.", func(t *teller) []use {
			return []use{{"sql", map[string]any{"query": "select at, who, what from audit where service = 'cart' order by at desc"}, t.table(240)}}
		}, "deployer", 300, "promotion of cart:4.18.2-rc1 accepted: rule 'stable-only' disabled by change CHG-8812", "Which line of the deployer shows how the candidate came through?", "By change CHG-8812 the rule \"stable-only\" was switched off for a test on Tuesday and never switched on again. Nobody did anything odd; the rule has no end date. I would switch it on, and add one."},
		{"Payments look strange too, some customers are charged and have no order.", func(t *teller) []use {
			return []use{{"metrics", map[string]any{"query": "payments_captured_total - orders_created_total"}, t.series("payments_without_order", 140)}}
		}, "event-bridge", 460, "x509: certificate has expired or is not yet valid: current time 2025-02-11T03:41:07Z is after 2025-02-11T03:00:00Z", "Why did the events of the bridge stop?", "The events of payments do not come through since 03:00: the certificate of the event bridge ran out at that very minute. Orders are created when they arrive, so nothing is lost, only late. It has to be renewed by hand, as described in ⟦path|runbooks/event-bridge/renew.md|Where is written how to get a new certificate?⟧."},
		{"Renewed. Is the backlog going down? I want numbers.", func(t *teller) []use {
			return []use{{"metrics", map[string]any{"query": "event_bridge_backlog"}, t.series("event_bridge_backlog", 180)}, {"sql", map[string]any{"query": "select count(*), min(created_at) from outbox where sent_at is null"}, t.table(30)}}
		}, "", 0, "", "", "It is: about 900 events a minute, 11,400 left, so a little under a quarter of an hour. The oldest one waits since 03:00:02, which fits the certificate."},
		{"While we wait: disk of the search nodes was yellow yesterday. Still?", func(t *teller) []use {
			return []use{{"kubectl", map[string]any{"command": "kubectl top nodes; kubectl get events -A --sort-by=.lastTimestamp"}, t.pods() + t.logFile("kubelet", 260, "⟦error|Evicted pod search-data-3: The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9871Mi|Why did one of the full machines drop out?⟧")}}
		}, "", 0, "", "", "One is worse: search-data-3 was evicted for ephemeral storage, 9,871 MiB left under a threshold of 10 GiB. It is the old indices; the job that deletes them has been suspended since Friday."},
		{"And the customers of Acme, who called? Their order ⟦fact|AC-7718820|Which order did Acme call about?⟧ must be found.", func(t *teller) []use {
			return []use{{"sql", map[string]any{"query": "select * from orders where reference like 'AC-77%'"}, t.table(320)}}
		}, "orders", 380, "order AC-7718820 parked: address check returned 'ambiguous house number 12/14'", "Why was the purchase of Acme stuck?", "Found: it was parked, not lost. The address check could not decide between house number 12 and 14. One question to the customer, and it goes on."},
	}
}

// logFile is a log with the proof somewhere in its middle.
func (t *teller) logFile(service string, lines int, proof string) string {
	var b strings.Builder
	at, hour, minute, second := lines/2+t.IntN(lines/6), 2, t.between(0, 20), 0
	for i := range lines {
		second += t.between(0, 5)
		minute, second = minute+second/60, second%60
		hour, minute = hour+minute/60, minute%60
		level, text := "INFO", fmt.Sprintf(one(t, []string{
			"handled request method=POST path=/v2/%s status=200 bytes=%d dur=%dms", "handled request method=GET path=/v2/%s/items status=200 bytes=%d dur=%dms",
			"cache hit key=%s:%d ttl=%ds", "pool %s: %d connections idle, %d in use", "span exported name=%s.handle attributes=%d dropped=%d",
		}), service, t.between(120, 9_000), t.between(1, 380))
		if i == at {
			level, text = "ERROR", proof
		}
		fmt.Fprintf(&b, "2025-02-11T%02d:%02d:%02d.%03dZ %-5s %s-%08x-%05x %s\n", hour, minute, second, t.IntN(1000), level, service, 0x6f5c9b00+t.IntN(4), 0x2a0+t.IntN(6), text)
	}
	return b.String()
}

// pods is what kubectl get pods prints.
func (t *teller) pods() string {
	var b strings.Builder
	b.WriteString("NAME                             READY   STATUS    RESTARTS   AGE     IP             NODE\n")
	for _, name := range []string{"cart", "checkout", "catalog", "deployer", "event-bridge", "ledger-api", "mailer", "orders", "payments", "pricing", "reserve", "search-api", "sessions", "stock"} {
		for range t.between(2, 4) {
			fmt.Fprintf(&b, "%-32s 1/1     Running   %d          %dd%02dh   10.42.%d.%-4d   node-%02d\n", fmt.Sprintf("%s-%08x-%05x", name, t.Uint32(), t.IntN(1<<20)),
				t.between(0, 3), t.between(0, 40), t.between(0, 23), t.between(0, 7), t.between(2, 254), t.between(1, 9))
		}
	}
	return b.String()
}

// table is what a query returns.
func (t *teller) table(rows int) string {
	var b strings.Builder
	b.WriteString(" id      | reference  | state      | amount_cents | region | updated_at\n---------+------------+------------+--------------+--------+-------------------------\n")
	for i := range rows {
		fmt.Fprintf(&b, " %7d | AC-77%05d | %-10s | %12d | %-6s | 2025-02-11 0%d:%02d:%02d.%03d\n", 4_411_000+i*t.between(1, 9), t.IntN(100_000),
			one(t, []string{"paid", "open", "parked", "shipped", "refunded"}), t.between(390, 260_000), one(t, []string{"eu-w", "eu-c", "us-e", "ap-s"}), t.between(0, 5), t.IntN(60), t.IntN(60), t.IntN(1000))
	}
	return b.String() + fmt.Sprintf("(%d rows)", rows)
}

// series is what the metrics answer with.
func (t *teller) series(name string, points int) string {
	type sample struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	var list []sample
	for pod := range 3 {
		s := sample{Metric: map[string]string{"__name__": name, "pod": fmt.Sprintf("%s-%d", "ledger-db", pod), "job": "orders"}}
		for i := range points {
			s.Values = append(s.Values, [2]any{1_739_239_000 + 15*i, fmt.Sprintf("%.2f", float64(t.between(0, 9_000))/100)})
		}
		list = append(list, s)
	}
	raw, err := json.Marshal(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": list}})
	if err != nil {
		panic("story: " + err.Error())
	}
	return string(raw)
}

// deployment is what kubectl get -o json prints.
func deployment() string {
	env := []map[string]string{}
	for _, name := range []string{"LEDGER_URL", "RESERVE_URL", "RETRY_BASE", "RETRY_LIMIT", "QUEUE", "REGION", "LOG_LEVEL", "OTEL_EXPORTER", "CACHE_MB", "FEATURES"} {
		env = append(env, map[string]string{"name": name, "value": "from-config-map/" + strings.ToLower(name)})
	}
	raw, err := json.MarshalIndent(map[string]any{
		"kind": "Deployment", "metadata": map[string]any{"name": "cart", "namespace": "orders", "labels": map[string]string{"team": "basket", "tier": "web"}, "annotations": map[string]string{"on-call": "Tomasz Wilk", "chart": "cart-4.18"}},
		"spec": map[string]any{"replicas": 4, "containers": []map[string]any{{"name": "cart", "image": "registry.internal/cart:4.18.2-rc1", "env": env, "resources": map[string]any{"limits": map[string]string{"cpu": "2", "memory": "1Gi"}}}}},
	}, "", "  ")
	if err != nil {
		panic("story: " + err.Error())
	}
	return string(raw)
}
