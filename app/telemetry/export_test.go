package telemetry

import "strings"

// Row is a metric of the table, as a scrape has it.
type Row struct {
	Name, Type, Help string
	Labels           []string
}

// Rows returns the table of metrics, with the one that identifies the build.
func Rows() []Row {
	rows := []Row{{namespace + "build_info", "gauge", "Constant 1.", []string{"version", "commit", "go_version"}}}
	for _, m := range metrics() {
		kind := "gauge"
		switch {
		case m.isCounter():
			kind = "counter"
		case m.buckets != nil:
			kind = "histogram"
		}
		rows = append(rows, Row{namespace + m.name, kind, m.help, strings.Fields(m.labels)})
	}
	return rows
}
