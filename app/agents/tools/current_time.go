package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the time zones, for machines that have none installed

	"bobbin/app/core/llm"
)

// NewCurrentTime returns the tool current_time; now is its clock. Results are such as "Saturday, 21 November 2026,
// 14:05:09 CET (UTC+01:00), 2026-11-21T14:05:09+01:00".
func NewCurrentTime(now func() time.Time) *Custom {
	type arguments struct {
		Timezone string `json:"timezone"`
	}
	return builtIn(llm.ToolSpec{
		Name:        "current_time",
		Description: "Returns the current date, weekday and time, in the user's time zone unless another one is named.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"timezone":{"type":"string",` +
			`"description":"IANA name of a time zone, such as Europe/Berlin; omit it for the user's own"}},"additionalProperties":false}`),
	}, `{"timezone": "Europe/Berlin"}`, func(_ context.Context, call Call, args arguments) (string, error) {
		zone, err := loadTimeZone(cmp.Or(args.Timezone, call.Session.Timezone))
		switch {
		case err == nil:
			return formatTime(now().In(zone)), nil
		case args.Timezone != "":
			return "", err
		} // the model cannot correct the session's setting
		return fmt.Sprintf("%s (the time zone %q of the session is unknown)", formatTime(now().UTC()), call.Session.Timezone), nil
	})
}

// loadTimeZone returns the time zone of the IANA name; empty means UTC.
func loadTimeZone(name string) (*time.Location, error) {
	// "Local" is the server's zone, which is internal.
	if zone, err := time.LoadLocation(name); err == nil && name != "Local" {
		return zone, nil
	}
	return nil, fmt.Errorf("the time zone %q is unknown; expected an IANA name such as \"Europe/Berlin\", \"America/New_York\" or \"UTC\"", name)
}

func formatTime(t time.Time) string {
	clock := t.Format("Monday, 2 January 2006, 15:04:05")
	// Zones without an abbreviation have their offset as the name.
	if zone, _ := t.Zone(); !strings.HasPrefix(zone, "+") && !strings.HasPrefix(zone, "-") {
		clock += " " + zone
	}
	return fmt.Sprintf("%s (UTC%s), %s", clock, t.Format("-07:00"), t.Format(time.RFC3339))
}
