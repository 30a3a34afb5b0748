package story

import (
	"fmt"
	"strings"
)

// small are bugs of the kinds that every service has, in places that this one has.
func small() []ticket {
	kinds := []struct{ ask, was, is, failure, answer, topic string }{
		{"%s panics for a customer without a contract.", "name := step.Contract.Name", "name := step.Contract.NameOr(\"-\")", "panic: runtime error: invalid memory address or nil pointer dereference in %s", "A contract may be absent; that is a dash now, as on the labels. The test has a customer without one.", "the customer without a contract (%d)"},
		{"%s misses the last row of each page. ⟦name|%s|Who noticed %s?⟧ counted them.", "for i := 0; i < len(rows)-1; i++ {", "for i := range rows {", "%s returned 99 rows, want 100", "Off by one: the loop ended before the last row. It ranges over all of them now.", "the missing last row (%d)"},
		{"The race detector complains about %s since Tuesday.", "counts[step.Key]++", "mu.Lock()\n\t\tcounts[step.Key]++\n\t\tmu.Unlock()", "WARNING: DATA RACE: write at 0x00c00012c0f0 by goroutine in %s", "The counters are behind the mutex that stood beside them already. Ten runs with -race are quiet.", "what the detector complains about (%d)"},
		{"%s writes whole addresses into the log. That must go today.", "log.Info(\"priced\", \"address\", step.Address)", "log.Info(\"priced\", \"zone\", step.Zone)", "%s logs personal data: found \"Am Deich 4\"", "It logs the zone in place of the address. I looked through the other log lines of the package: none has personal data.", "the addresses that were written down (%d)"},
		{"%s takes seconds for large customers.", "row := find(rows, step.Key)", "row := index[step.Key]", "%s: 10000 parcels took 4.81s, want under 100ms", "It searched the list once for each parcel. There is an index now, built once; the same test takes 9 ms.", "the large customers that wait (%d)"},
	}
	places := []struct{ pkg, file, function, subject, who string }{
		{"internal/store", "customers.go", "LoadCustomer", "Customers in PostgreSQL.", "Ayumi"},
		{"internal/http", "pages.go", "NextPage", "Pages of lists.", "Leopold Strand"},
		{"internal/cache", "stats.go", "Count", "How often the cache helped.", "Wanda"},
		{"internal/rates", "audit.go", "Trace", "Why a price is what it is.", "Mirembe"},
		{"internal/quote", "bulk.go", "PriceAll", "Prices of many parcels at once.", "Jonas Feld"},
		{"internal/zones", "names.go", "NameOf", "Names of zones in the language of the customer.", "Dorota"},
		{"internal/importer", "sheets.go", "ReadSheet", "Tariffs that come as spreadsheets.", "Callum Byrne"},
		{"internal/money", "tally.go", "Tally", "Sums by currency.", "Ester"},
		{"internal/http", "webhooks.go", "Notify", "What customers are told of their parcels.", "Abel Moreau"},
		{"internal/store", "search.go", "FindParcels", "Search by reference and by address.", "Sunniva"},
		{"internal/cache", "warm.go", "Warm", "The cache of the most asked routes.", "Rafael Pinto"},
		{"internal/rates", "holidays.go", "OnHoliday", "Surcharges of holidays.", "Greta Olsen"},
	}
	var list []ticket
	for i, p := range places {
		k := kinds[i%len(kinds)]
		topic := fmt.Sprintf(k.topic, 493+i)
		ask := fmt.Sprintf("%d: ", 493+i)
		if strings.Count(k.ask, "%s") > 1 {
			ask += fmt.Sprintf(k.ask, p.function, p.who, topic)
		} else {
			ask += fmt.Sprintf(k.ask, p.function)
		}
		list = append(list, ticket{
			ask: ask, pkg: p.pkg, file: p.file, function: p.function, subject: p.subject, was: k.was, is: k.is,
			command: fmt.Sprintf("go test ./%s/ -run Test%s", p.pkg, p.function), failure: fmt.Sprintf(strings.TrimSuffix(p.file, ".go")+"_test.go:%d: "+k.failure, 40+7*i, p.function), answer: k.answer, topic: topic,
		})
	}
	return list
}
