package providerhttp

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// meaning is what a provider's own words say of a refused request.
type meaning int

const (
	unclear   meaning = iota // nothing that is known
	tooLong                  // the prompt, or the prompt and its answer, do not fit
	otherwise                // something else is wrong
)

var (
	// Words for what can be too long, and for too long. A sentence with both says that
	// the prompt does not fit.
	sizeWord = regexp.MustCompile(`\b(?:contexts?|prompts?|inputs?|tokens?|lengths?|messages|conversation|request(?: body| entity)?|payload|sequence|(?:input|prompt)_(?:tokens|length))\b`)
	overWord = regexp.MustCompile(`\bexceed(?:s|ed|ing|error)?\b|\btoo (?:long|large|many|big|much)\b|\b(?:longer|larger|greater|bigger|more) than\b|` +
		`\b(?:less|fewer|smaller) than\b|\bat most\b|\bmax(?:imum|length)?\b|\blimit(?:s|ed)?\b|\boverflow\w*|\brange of\b|<=|\bover\b|\breached\b`)
	// contextSize names the window itself: what speaks of it and of too much can mean
	// nothing else.
	contextSize = regexp.MustCompile(`\bcontexts?[\s_-]*(?:length|window|size|limit|tokens?)`)
	contextOver = regexp.MustCompile(`\b(?:only|but|not enough|is full)\b|\bcontexts?[\s_-]*(?:length|window|size|limit|tokens?)[\s_-]*exceed`)
	// reduce is how some say it without a word of what is too long.
	reduce     = regexp.MustCompile(`\b(?:reduce|shorten)\b`)
	tooLongCJK = regexp.MustCompile(`过长|超长|太长|过大|超(?:出|过)[^。]*(?:上下文|长度|限制|token)|(?:上下文|长度)[^。]*(?:超|限制)`)
	// sentenceEnd is where a sentence ends.
	sentenceEnd = regexp.MustCompile(`[.!?](?:\s|$)|[\n。]`)
	// ofMinute is more than a minute's allowance in one request (OpenAI, Groq): waiting
	// does not help, a shorter prompt does.
	ofMinute = regexp.MustCompile(`^request too large for .+ on .*tokens per min(?:ute)? \(tpm\): limit`)

	// account is what has nothing to do with the request.
	account = regexp.MustCompile(`\b(?:quota|billing|credits?|balance|payment|subscription|rate.?limit\w*|throttl\w*|api.?key|unauthori[sz]ed|authenticat\w*|permission|` +
		`forbidden|too many requests|requests? limit|concurren\w*)\b|\bper (?:minute|min|hour|day|week|month|second)\b|\b[rt]p[mds]\b`)
	// checked is how Pydantic says that a value is wrong.
	checked = regexp.MustCompile(`\b(?:input|string|list|value) should\b`)
	// answerSize is a limit of the answer alone.
	answerSize   = regexp.MustCompile(`max_?(?:completion_?|output_?|new_?)?tokens|\b(?:output|completion) tokens\b`)
	notOfPrompts = regexp.MustCompile(`\b(?:prompts?|inputs?|messages|contexts?|total|conversation|(?:input|prompt|total)_(?:tokens|length))\b`)
	// noRoom is a prompt that leaves no token for the answer (vLLM).
	noRoom = regexp.MustCompile(`\bmax_\w*tokens\b[^.]*\bgot -\d`)
	// otherCause is what a request may be refused for besides its length.
	otherCause = regexp.MustCompile(`\b(?:images?|pictures?|pixels?|audio|videos?|pdf|files?|attachments?|documents?|media|tools?|functions?|schema|response_format|` +
		`temperature|top_[pk]|penalty|logprobs?|logit_bias|stop|seed|cache_control|thinking|reasoning|metadata|roles?|deprecated|does not exist|not found|no such|` +
		`(?:content|usage|management) polic(?:y|ies)|safety|moderation|filter\w*|flagged|harmful|prohibited|violat\w*|region|country|dimensions?|embeddings?|` +
		`invalid (?:value|type|role|model)|extra inputs|model(?: \S+)? is (?:not (?:supported|allowed|valid)|required|missing|unknown))\b`)
	// otherHint is a word that means another cause only if the sentence names a member.
	otherHint = regexp.MustCompile(`\b(?:json|strings?|arrays?|lists?|items?|names?|identifier|ids?|unsupported|unknown|unexpected|unrecognized|required|missing|expected|` +
		`(?:not|cannot be|only) (?:an? )?(?:be )?(?:support(?:ed)?|permitted|allowed|valid)|polic(?:y|ies)|blocked|` +
		`(?:must|should) be (?:an?|one of|set|string|boolean|integer|greater|between|less)|invalid format)\b`)
	// namedMember is a member of the request: quoted, before or after a colon, or a name
	// with an underscore that is no errorCode.
	namedMember = regexp.MustCompile("[\"'`“‘][a-z_][\\w.\\[\\]-]+[\"'`”’]|" + `^\w+(?:\.\w+)+: |\b(?:field|parameter|argument|property)s?(?: supplied)?: ?[\w.\[\]]+(?:[,.]|$)|\b[a-z]+_[a-z_]+\b`)
	errorCode   = regexp.MustCompile(`\b\w+_(?:error|exception)\b`)
)

// readMeaning returns what the report's words say, and reads the numbers of a prompt
// that is too long.
func (r *report) readMeaning() meaning {
	if !mayRefuseLength(r.status) {
		return otherwise
	}
	out := unclear
	for _, sentence := range slices.Concat(r.sentences, r.words) {
		said := r.meaningOf(sentence)
		if said == tooLong {
			r.takeSizes(readSizes(ownWords(sentence)))
			return tooLong
		}
		out = max(out, said)
	}
	return out
}

// mayRefuseLength reports whether an answer with the status may say that the prompt
// is too long.
func mayRefuseLength(status int) bool {
	switch status {
	case 0, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusBadGateway:
		return true
	default:
		return false
	}
}

// meaningOf returns the meaning of a sentence or a code.
func (r *report) meaningOf(text string) meaning {
	sentence := ownWords(text)
	switch {
	case ofMinute.MatchString(sentence):
		return tooLong
	case r.status == http.StatusTooManyRequests:
		return otherwise
	case sentence == "1261", noRoom.MatchString(sentence), anySentence(sentence, saysContextOver): // 1261 is Zhipu's code
		return tooLong
	case account.MatchString(sentence), checked.MatchString(sentence), answerSize.MatchString(sentence) && !notOfPrompts.MatchString(sentence), !r.ofMessages(sentence):
		return otherwise
	}
	sized, caused, hinted := anySentence(sentence, saysTooLong), otherCause.MatchString(sentence), otherHint.MatchString(sentence)
	switch found := readSizes(sentence); {
	case r.status >= 500 && (found.limit == 0 || found.requested <= found.limit):
		return otherwise // a busy server speaks of limits, too
	case sized && !caused && !hinted:
		return tooLong
	case !sized && (caused || hinted && namesMember(text)):
		return otherwise
	default:
		return unclear
	}
}

// anySentence reports whether one of the sentences of a text matches.
func anySentence(text string, says func(sentence string) bool) bool {
	return slices.ContainsFunc(sentenceEnd.Split(text, -1), says)
}

func saysContextOver(sentence string) bool {
	return contextSize.MatchString(sentence) && (overWord.MatchString(sentence) || contextOver.MatchString(sentence))
}

func saysTooLong(sentence string) bool {
	return sizeWord.MatchString(sentence) && (overWord.MatchString(sentence) || reduce.MatchString(sentence)) || tooLongCJK.MatchString(sentence)
}

// namesMember reports whether a sentence says which member of the request is wrong.
func namesMember(text string) bool {
	text = errorCode.ReplaceAllString(idOfRequest.ReplaceAllString(strings.ToLower(text), ""), "")
	return !isWord(text) && namedMember.MatchString(text)
}

// ofMessages reports whether the member that the report, or else the sentence, is about
// may be the messages.
func (r *report) ofMessages(sentence string) bool {
	param := r.param
	if m := invalidMember.FindStringSubmatch(sentence); param == "" && m != nil {
		param = m[1]
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(param, "body."), ".")
	name, _, _ = strings.Cut(name, "[")
	if _, err := strconv.Atoi(name); err == nil { // New API gives the status
		return true
	}
	return slices.Contains([]string{"", "messages", "message", "input", "inputs", "prompt", "contents", "body", "request", "model",
		"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"}, name)
}

var (
	// A name in quotation marks, which is kept, and other quotations, which may be the
	// user's words, from the first mark to the last.
	quotedName    = regexp.MustCompile("[\"'`“‘]([\\w.\\[\\]-]{1,60})[\"'`”’]")
	quotedText    = regexp.MustCompile("(?s)\".*\"|\".*$|`.*`|“.*”|(^|[\\s(:=,])'.*'")
	idOfRequest   = regexp.MustCompile(`(?i)\(?\b(?:request|trace)[ _-]?id\b[:=]? ?\S*`)
	quotedValue   = regexp.MustCompile(`\binput_value=\S*`) // Pydantic
	memberPath    = regexp.MustCompile(`^\w+(?:\.\w+)+: `)  // Anthropic: "messages.3.content.0: "
	invalidMember = regexp.MustCompile(`^invalid (?:value for )?([\w.\[\]]+): (?:string|array|object|list|expected|too many)\b`)
)

// ownWords returns a provider's words in lower case without what they quote and without
// the id of the request. Of a code it returns its words.
func ownWords(text string) string {
	if isWord(text) {
		return strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(text))
	}
	text = idOfRequest.ReplaceAllString(text, "")
	text = quotedName.ReplaceAllString(text, "$1")
	text = quotedText.ReplaceAllString(text, "$1 ")
	text = memberPath.ReplaceAllString(text, "")
	return strings.ToLower(quotedValue.ReplaceAllString(text, ""))
}
