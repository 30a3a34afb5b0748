package anthropic

import (
	"regexp"
	"strconv"
	"strings"
)

// generation is which Claude a model is, by its name: 4, 5 for
// claude-sonnet-4-5-20250929. Zero = the name does not say.
type generation struct{ major, minor int }

// The forms of names: family first since Claude 4, number first before. A date is
// not a version.
var (
	familyFirst = regexp.MustCompile(`claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)
	numberFirst = regexp.MustCompile(`claude-(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)
)

// generationOf reads a model's name, also as proxies write it.
func generationOf(model string) generation {
	model = strings.ToLower(model)
	if strings.Contains(model, "claude-mythos-preview") {
		return generation{major: 4, minor: 6}
	}
	for _, form := range []*regexp.Regexp{familyFirst, numberFirst} {
		if m := form.FindStringSubmatch(model); m != nil {
			major, _ := strconv.Atoi(m[1]) // digits
			minor, _ := strconv.Atoi(m[2])
			return generation{major, minor}
		}
	}
	return generation{}
}

// isSince reports whether the model is of that generation or a later one.
func (g generation) isSince(major, minor int) bool {
	return g.major > major || g.major == major && g.minor >= minor
}

// decidesThinking: the model decides how much it thinks; later ones refuse a
// budget.
func (g generation) decidesThinking() bool { return g.isSince(4, 6) }

// fixedSampling: the model refuses a temperature.
func (g generation) fixedSampling() bool { return g.isSince(4, 7) }
