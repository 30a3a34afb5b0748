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

// CurrentTime tells the date and the time.
type CurrentTime struct {
	now func() time.Time
}

// NewCurrentTime returns the tool current_time, which asks now for the time.
func NewCurrentTime(now func() time.Time) *CurrentTime {
	return &CurrentTime{now: now}
}

// Spec tells the model what the tool is and takes.
func (*CurrentTime) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        "current_time",
		Description: "Tells the current date, weekday and time, in the user's time zone unless another one is named.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"timezone":{"type":"string",` +
			`"description":"IANA name of a time zone, such as Europe/Berlin; leave it out for the user's own"}},"additionalProperties":false}`),
	}
}

// Idempotent reports true: looking at the clock changes nothing.
func (*CurrentTime) Idempotent() bool { return true }

// Call answers like "Saturday, 21 November 2026, 14:05:09 CET (UTC+01:00),
// 2026-11-21T14:05:09+01:00".
func (c *CurrentTime) Call(_ context.Context, call Call) (string, error) {
	args, err := arguments[struct {
		Timezone string `json:"timezone"`
	}](call.Arguments, `{"timezone": "Europe/Berlin"}`)
	if err != nil {
		return "", err
	}
	if args.Timezone != "" {
		zone, err := location(args.Timezone)
		if err != nil {
			return "", err
		}
		return tell(c.now().In(zone)), nil
	}
	zone, err := location(call.Session.Timezone)
	if err != nil { // a wrong setting of the session is not the model's fault
		return fmt.Sprintf("%s (the time zone %q of the session is not known)", tell(c.now().UTC()), call.Session.Timezone), nil
	}
	return tell(c.now().In(zone)), nil
}

// location returns the time zone of the IANA name; empty means UTC.
func location(name string) (*time.Location, error) {
	// "Local" is the server's zone, which is nobody's business.
	if zone, err := time.LoadLocation(name); err == nil && name != "Local" {
		return zone, nil
	}
	return nil, fmt.Errorf("the time zone %q is not known; expected an IANA name such as \"Europe/Berlin\", \"America/New_York\" or \"UTC\"", name)
}

func tell(t time.Time) string {
	clock := t.Format("Monday, 2 January 2006, 15:04:05")
	// Zones without an abbreviation have their offset in its place.
	if zone, _ := t.Zone(); !strings.HasPrefix(zone, "+") && !strings.HasPrefix(zone, "-") {
		clock += " " + zone
	}
	return fmt.Sprintf("%s (UTC%s), %s", clock, t.Format("-07:00"), t.Format(time.RFC3339))
}
