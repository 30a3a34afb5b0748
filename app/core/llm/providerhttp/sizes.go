package providerhttp

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sizes are the numbers with which a provider refuses a prompt, in tokens; 0 = not
// found.
type sizes struct {
	limit     int
	requested int // includes the wanted answer where the provider counts it in
	prompt    int // of requested, the prompt alone
}

// takeSizes keeps the numbers of a sentence.
func (r *report) takeSizes(found sizes) {
	if found.limit > 0 {
		r.limit = found.limit
	}
	if found.requested > 0 {
		r.requested, r.prompt = found.requested, found.prompt
	}
}

var (
	// comparison is "7000 + 2000 > 8192": prompt, answer, limit.
	comparison = regexp.MustCompile(`\b(\d(?:[\d,_]*\d)?)(?: tokens)?(?: \+ (\d(?:[\d,_]*\d)?)(?: tokens)?)? > (\d(?:[\d,_]*\d)?)\b( -)?`)
	// amount is a number by itself: no part of a name, of a version, of another number.
	amount = regexp.MustCompile(`(?:^|[\s(\[:=<>])(\d(?:[\d,_]*\d)?)(k)?(?:[\s)\],.;:!]|$)`)
	// clause is where the words that speak of a number begin.
	clause = regexp.MustCompile(`[.;!?] |, [a-z]| but | and | while |\d[\d,_]{2,}k?\b`)

	// What a number is, by the words right behind it and, failing that, by those of
	// its clause before it; the first that fits holds.
	isAnswer = regexp.MustCompile(`^(?: tokens)?,? ?(?:(?:in|for|from) the )?(?:completion|output|max_new_tokens|max_tokens|answer)\b`)
	isPrompt = regexp.MustCompile(`^(?: tokens)?,? ?(?:(?:in|for|from|of) )?(?:the )?(?:text )?(?:inputs?|messages|prompt)\b`)
	isLimit  = regexp.MustCompile(`^(?: tokens)? (?:maximum|max|limit|context)\b`)

	ofNothing = regexp.MustCompile(`\b(?:by|(?:ref|id|code|status):?) $`)        // an excess, a name
	ofBoth    = regexp.MustCompile(`\binput and (?:maximum )?output tokens \($`) // Cloudflare
	ofLimit   = regexp.MustCompile(`\b(?:max(?:imum|length)?|limit(?:ed)?|at most|allowed|only|less than|up to|window|context (?:length|size)|range|exceeds?|exceed(?:ed|ing)|(?:longer|larger|greater|more) than)\b|<=|>`)
	ofSum     = regexp.MustCompile(`\b(?:requested|total)\b`)
	ofAnswer  = regexp.MustCompile(`\b(?:output|completion|max_\w*tokens)\b`)
	ofPrompt  = regexp.MustCompile(`\b(?:prompt|inputs?|messages|request|conversation|passed|given|received|resulted|contains|has|length|actual)\b`)
)

// minLimit is the smallest number that is taken for a limit.
const minLimit = 16

// maskCodes are numbers in sentences that are not sizes.
func maskCodes() []string { return []string{"2013", "1261", "3051", "400", "413", "422", "500"} }

// readSizes reads the numbers of a sentence in lower case by the words around them.
func readSizes(sentence string) sizes {
	if m := comparison.FindStringSubmatch(sentence); m != nil && m[4] == "" {
		prompt := parseNumber(m[1])
		return sizes{limit: parseNumber(m[3]), prompt: prompt, requested: prompt + parseNumber(m[2])}
	}
	var out sizes
	var sum, answer int
	for _, at := range amount.FindAllStringSubmatchIndex(sentence, -1) {
		begin, end := at[2], at[3]
		n := parseNumber(sentence[begin:end])
		if at[4] >= 0 {
			n, end = n*1000, at[5]
		}
		to := map[part]*int{partLimit: &out.limit, partSum: &sum, partAnswer: &answer, partPrompt: &out.prompt}
		if field := to[partOf(sentence, begin, end)]; field != nil && *field == 0 && (n >= minLimit || field != &out.limit) {
			*field = n
		}
	}
	out.requested = max(sum, out.prompt+answer)
	if out.prompt == 0 && sum == 0 {
		out.requested = 0 // the answer alone says nothing
	}
	return out
}

// part is what a number in a refusal counts.
type part int

const (
	partNone part = iota
	partLimit
	partSum // prompt and answer
	partAnswer
	partPrompt
)

// partOf returns what the number between begin and end of the sentence counts.
func partOf(sentence string, begin, end int) part {
	text, behind := sentence[begin:end], sentence[end:]
	before := sentence[:begin]
	if cuts := clause.FindAllStringIndex(before, -1); len(cuts) > 0 {
		before = before[cuts[len(cuts)-1][1]-1:]
	}
	switch {
	case slices.Contains(maskCodes(), text) && strings.HasSuffix(before, "("), ofNothing.MatchString(before):
		return partNone
	case isAnswer.MatchString(behind):
		return partAnswer
	case isPrompt.MatchString(behind):
		return partPrompt
	case ofBoth.MatchString(sentence[:begin]):
		return partSum
	case isLimit.MatchString(behind), ofLimit.MatchString(before):
		return partLimit
	case ofSum.MatchString(before):
		return partSum
	case ofAnswer.MatchString(before):
		return partAnswer
	case ofPrompt.MatchString(before):
		return partPrompt
	default:
		return partNone
	}
}

// parseNumber reads "8,192"; 0 if it cannot be a token count.
func parseNumber(s string) int {
	n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(s))
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}
