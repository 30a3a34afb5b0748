package relevance

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core/searchtext"
)

// What the author and the day of a message add to its score, as a share of it, if the question
// mentions them (ADR 0021).
const (
	authorShare = 0.4
	dayShare    = 0.4
)

// zoneReach is how far days are in other time zones: the question's is not known.
const zoneReach = 12 * time.Hour

// Mentions are the people and the days that a question names. The zero value names none.
type Mentions struct {
	groups  []searchtext.Group
	periods []period
}

// period is from a time until before another one.
type period struct{ from, until time.Time }

// FindMentions returns what a question names; its text is searched for days and months with a
// year, in English and German.
func FindMentions(question searchtext.Question, text string) Mentions {
	var list []period
	add := func(year, month, day string) {
		y, _ := strconv.Atoi(year) // the forms have digits only
		m := time.Month(max(0, slices.Index(germanMonths[:], strings.ToLower(month))))
		for _, layout := range []string{"1", "January", "Jan"} {
			if t, err := time.Parse(layout, month); err == nil {
				m = t.Month()
			}
		}
		d, _ := strconv.Atoi(day)
		from := time.Date(y, m, max(1, d), 0, 0, 0, 0, time.UTC)
		if m == 0 || from.Month() != m { // there is none such
			return
		}
		until := from.AddDate(0, 0, 1)
		if day == "" {
			until = from.AddDate(0, 1, 0)
		}
		list = append(list, period{from.Add(-zoneReach), until.Add(zoneReach)})
	}
	for _, f := range isoDay.FindAllStringSubmatch(text, -1) {
		add(f[1], f[2], f[3])
	}
	days := dayFirst.FindAllStringSubmatch(text, -1)
	for _, f := range days {
		add(f[3], f[2], f[1])
	}
	if len(days) == 0 { // else the month of a day would be found again, without it
		for _, f := range dayLast.FindAllStringSubmatch(text, -1) {
			add(f[3], f[1], f[2])
		}
	}
	return Mentions{groups: question.Groups, periods: list}
}

// Boost returns by what the score of a message is multiplied, at least 1: more if the question
// has a word of its author's name, and more if it names its day or month.
func (m Mentions) Boost(author string, at time.Time) float64 {
	boost := 1.0
	if author != "" && slices.ContainsFunc(searchtext.Text(author).Words, func(word string) bool {
		return slices.ContainsFunc(m.groups, func(g searchtext.Group) bool { return slices.Contains(g.Words, word) })
	}) {
		boost += authorShare
	}
	if slices.ContainsFunc(m.periods, func(p period) bool { return !at.Before(p.from) && at.Before(p.until) }) {
		boost += dayShare
	}
	return boost
}

// The forms of a day and of a month: 2026-01-31, 31 January 2026 or 31. Januar 2026, and
// January 31, 2026 or January 2026.
var (
	isoDay   = regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})\b`)
	dayFirst = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(\pL{3,9})\.?,?\s+(\d{4})\b`)
	dayLast  = regexp.MustCompile(`\b(\pL{3,9})\.?(?:\s+(\d{1,2})(?:st|nd|rd|th)?)?,?\s+(\d{4})\b`)
)

//nolint:gochecknoglobals // immutable
var germanMonths = [...]string{"", "januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober", "november", "dezember"}
