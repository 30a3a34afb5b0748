package providerhttp

import (
	"net/http"
	"regexp"
	"slices"
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
	// elsewhere is what a request may be refused for besides its length.
	elsewhere = regexp.MustCompile(`\b(?:images?|pictures?|pixels?|audio|videos?|pdf|files?|attachments?|documents?|media|tools?|functions?|schema|response_format|json|` +
		`temperature|top_[pk]|penalty|logprobs?|logit_bias|stop|seed|cache_control|thinking|reasoning|strings?|arrays?|lists?|items?|metadata|names?|identifier|ids?|roles?|` +
		`unsupported|unknown|unexpected|unrecognized|required|missing|expected|deprecated|(?:not|cannot be|only) (?:an? )?(?:be )?(?:support(?:ed)?|permitted|allowed|valid)|does not exist|not found|no such|` +
		`policy|policies|safety|moderation|filter\w*|blocked|flagged|harmful|prohibited|violat\w*|region|country|dimensions?|embeddings?)\b|` +
		`\b(?:must|should) be (?:an?|one of|set|string|boolean|integer|greater|between|less)\b|\binvalid (?:value|type|role|format|model)\b`)
)

// readMeaning returns what the report's words say, and reads the numbers of a prompt
// that is too long.
func (r *report) readMeaning() meaning {
	if !mayRefuseLength(r.status) {
		return otherwise
	}
	out := unclear
	for _, sentence := range slices.Concat(r.sentences, r.words) {
		sentence = ownWords(sentence)
		said := r.meaningOf(sentence)
		if said == tooLong {
			r.takeSizes(readSizes(sentence))
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
func (r *report) meaningOf(sentence string) meaning {
	switch {
	case ofMinute.MatchString(sentence):
		return tooLong
	case r.status == http.StatusTooManyRequests:
		return otherwise
	case sentence == "1261", anySentence(sentence, saysContextOver): // 1261 is Zhipu's code
		return tooLong
	case r.status >= 500:
		return otherwise
	case account.MatchString(sentence), checked.MatchString(sentence), answerSize.MatchString(sentence) && !notOfPrompts.MatchString(sentence), !r.ofMessages(sentence):
		return otherwise
	}
	sized := anySentence(sentence, saysTooLong)
	switch other := elsewhere.MatchString(sentence); {
	case sized && !other:
		return tooLong
	case other && !sized:
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

// ofMessages reports whether the member that the report, or else the sentence, is about
// may be the messages.
func (r *report) ofMessages(sentence string) bool {
	param := r.param
	if m := invalidMember.FindStringSubmatch(sentence); param == "" && m != nil {
		param = m[1]
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(param, "body."), ".")
	name, _, _ = strings.Cut(name, "[")
	return slices.Contains([]string{"", "messages", "message", "input", "inputs", "prompt", "contents", "body", "model",
		"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"}, name)
}

var (
	// A name in quotation marks, which is kept, and other quotations, which may be the
	// user's words, from the first mark to the last.
	quotedName    = regexp.MustCompile("[\"'`“‘]([\\w.\\[\\]-]{1,60})[\"'`”’]")
	quotedText    = regexp.MustCompile("(?s)\".*\"|\".*$|`.*`|“.*”|(^|[\\s(:=,])'.*'")
	quotedValue   = regexp.MustCompile(`\binput_value=\S*`) // Pydantic
	memberPath    = regexp.MustCompile(`^\w+(?:\.\w+)+: `)  // Anthropic: "messages.3.content.0: "
	invalidMember = regexp.MustCompile(`^invalid (?:value for )?([\w.\[\]]+): (?:string|array|object|list|expected|too many)\b`)
)

// ownWords returns a provider's words in lower case without what they quote. Of a
// code it returns its words.
func ownWords(text string) string {
	if isWord(text) {
		return strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(text))
	}
	text = quotedName.ReplaceAllString(text, "$1")
	text = quotedText.ReplaceAllString(text, "$1 ")
	text = memberPath.ReplaceAllString(text, "")
	return strings.ToLower(quotedValue.ReplaceAllString(text, ""))
}
