package llm

import "strings"

// Version is the version in a model's name: 4, 5 for claude-sonnet-4-5-20250929. Zero = the name does
// not say.
type Version [2]int

// IsSince reports whether the version is this one or later.
func (v Version) IsSince(major, minor int) bool {
	return v[0] > major || v[0] == major && v[1] >= minor
}

// ClaudeOf returns the family and the version of a Claude by its name, also as proxies write it. Names
// have the family first since Claude 4, and the version first before (then there is no family).
func ClaudeOf(model string) (family string, v Version) {
	_, name, _ := strings.Cut(strings.ToLower(model), "claude-")
	if v = versionOf(name); v != (Version{}) {
		return "", v
	}
	family, rest, _ := strings.Cut(name, "-")
	if family == "mythos" && strings.HasPrefix(rest, "preview") {
		return family, Version{4, 6}
	}
	return family, versionOf(rest)
}

// versionOf reads a version at the beginning of a text: "5-5-20260901" and "5.5" are 5, 5. A
// number of more than two digits is a date.
func versionOf(text string) (v Version) {
	for i := range v {
		digits := 0
		for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
			v[i] = v[i]*10 + int(text[digits]-'0')
			digits++
		}
		if digits == 0 || digits > 2 {
			v[i] = 0
			return v
		}
		if text = text[digits:]; text == "" || text[0] != '-' && text[0] != '.' {
			return v
		}
		text = text[1:]
	}
	return v
}
