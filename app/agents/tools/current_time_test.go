package tools_test

import (
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
)

func TestCurrentTime(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return time.Date(2026, 11, 21, 13, 5, 9, 123, time.UTC) }
	const (
		berlin   = "Saturday, 21 November 2026, 14:05:09 CET (UTC+01:00), 2026-11-21T14:05:09+01:00"
		expected = `; expected a JSON object such as {"timezone": "Europe/Berlin"}`
		utc      = "Saturday, 21 November 2026, 13:05:09 UTC (UTC+00:00), 2026-11-21T13:05:09Z"
	)
	tests := []struct {
		name      string
		session   string
		arguments string
		want      string
		wantErr   string
	}{
		{"the session's zone", "Europe/Berlin", "{}", berlin, ""},
		{"no arguments at all", "Europe/Berlin", "", berlin, ""},
		{"blank arguments", "Europe/Berlin", " \n", berlin, ""},
		{"the default", "", "{}", utc, ""},
		{"a zone asked for", "", `{"timezone": "Europe/Berlin"}`, berlin, ""},
		{"an empty zone", "Europe/Berlin", `{"timezone": ""}`, berlin, ""},
		{"another day", "", `{"timezone": "Pacific/Auckland"}`, "Sunday, 22 November 2026, 02:05:09 NZDT (UTC+13:00), 2026-11-22T02:05:09+13:00", ""},
		{"no abbreviation, half an hour", "", `{"timezone": "Asia/Kathmandu"}`, "Saturday, 21 November 2026, 18:50:09 (UTC+05:45), 2026-11-21T18:50:09+05:45", ""},
		{"west, no abbreviation", "", `{"timezone": "America/Sao_Paulo"}`, "Saturday, 21 November 2026, 10:05:09 (UTC-03:00), 2026-11-21T10:05:09-03:00", ""},
		{"a wrong session", "Mars/Base", "{}", utc + ` (the time zone "Mars/Base" of the session is unknown)`, ""},
		{"unknown zone", "Europe/Berlin", `{"timezone": "Berlin"}`, "",
			`the time zone "Berlin" is unknown; expected an IANA name such as "Europe/Berlin", "America/New_York" or "UTC"`},
		{"the server's zone", "", `{"timezone": "Local"}`, "",
			`the time zone "Local" is unknown; expected an IANA name such as "Europe/Berlin", "America/New_York" or "UTC"`},
		{"a path", "", `{"timezone": "../../etc/passwd"}`, "",
			`the time zone "../../etc/passwd" is unknown; expected an IANA name such as "Europe/Berlin", "America/New_York" or "UTC"`},
		{"unknown argument", "", `{"zone": "UTC"}`, "", "the arguments do not match the schema: at '': additional properties 'zone' not allowed" + expected},
		{"wrong type", "", `{"timezone": 1}`, "", "the arguments do not match the schema: at '/timezone': got number, want string" + expected},
		{"no object", "", `"UTC"`, "", "the arguments are not one JSON object" + expected},
		{"broken off", "", `{"timezone": "Eur`, "", "the arguments are not one JSON object" + expected},
		{"two objects", "", `{} {}`, "", "the arguments are not one JSON object" + expected},
	}
	tool := tools.NewCurrentTime(clock)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.Call(t.Context(), tools.Call{Arguments: tt.arguments, Session: core.Session{Timezone: tt.session}})
			checkAnswer(t, got, err, tt.want, tt.wantErr)
		})
	}
}

// checkAnswer compares what a tool answered; an empty wantErr wants no error.
func checkAnswer(t *testing.T, got string, err error, want, wantErr string) {
	t.Helper()
	message := ""
	if err != nil {
		message = err.Error()
	}
	compare.Equal(t, "text, fault", []any{want, wantErr}, []any{got, message})
}
