package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the time zones, for machines that have none installed

	"bobbin/app/core/llm"
)

// CurrentTime returns the date and the time.
type CurrentTime struct {
	now func() time.Time
}

// NewCurrentTime returns the tool current_time; now is its clock.
func NewCurrentTime(now func() time.Time) *CurrentTime {
	return &CurrentTime{now: now}
}

// Spec returns the definition for the model.
func (*CurrentTime) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "current_time",
		Description: "Returns the current date, weekday and time, in the user's time zone unless another one is named.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"timezone":{"type":"string",` +
			`"description":"IANA name of a time zone, such as Europe/Berlin; omit it for the user's own"}},"additionalProperties":false}`),
	}
}

// Idempotent returns true.
func (*CurrentTime) Idempotent() bool { return true }

// Call returns text such as "Saturday, 21 November 2026, 14:05:09 CET (UTC+01:00),
// 2026-11-21T14:05:09+01:00".
func (c *CurrentTime) Call(_ context.Context, call Call) (string, error) {
	args, err := parseArguments[struct {
		Timezone string `json:"timezone"`
	}](call.Arguments, `{"timezone": "Europe/Berlin"}`)
	if err != nil {
		return "", err
	}
	if args.Timezone != "" {
		zone, err := loadTimeZone(args.Timezone)
		if err != nil {
			return "", err
		}
		return formatTime(c.now().In(zone)), nil
	}
	zone, err := loadTimeZone(call.Session.Timezone)
	if err != nil { // the model cannot correct the session's setting
		return fmt.Sprintf("%s (the time zone %q of the session is unknown)", formatTime(c.now().UTC()), call.Session.Timezone), nil
	}
	return formatTime(c.now().In(zone)), nil
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
