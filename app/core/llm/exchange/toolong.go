package exchange

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// How providers say that a prompt is too long. Each is anchored at the beginning
// of the sentence, so that no quoted text can pass for it. The groups, in tokens: limit;
// prompt and output, which are summed to requested; and requested, where the sentence
// does not say whether the answer is in it.
var (
	// OpenAI, vLLM, DeepSeek, OpenRouter; the second half differs.
	longModel  = regexp.MustCompile(`(?i)^(?:this|the) (?:model|endpoint)'s maximum context length is (?P<limit>\d[\d,]*) tokens`)
	longPrompt = regexp.MustCompile(`(?i)\bhowever, (?:your messages resulted in|your request has) (?P<prompt>\d[\d,]*) (?:input )?tokens`)
	longAsked  = regexp.MustCompile(`(?i)\bhowever, you requested(?: about)? (?P<requested>\d[\d,]*) tokens`)
	longAnswer = regexp.MustCompile(`(?i)^[^()]*\([^()]*\b(?P<output>\d[\d,]*) in the (?:completion|output)\)`)
	longOutput = regexp.MustCompile(`(?i)\bhowever, you requested (?P<output>\d[\d,]*) output tokens and your prompt contains(?: at least)? (?P<prompt>\d[\d,]*) input tokens`)
	// OpenAI since GPT-5.
	longInput      = regexp.MustCompile(`(?i)^your input exceeds the context window of this model`)
	longConfigured = regexp.MustCompile(`(?i)^input tokens exceed the configured limit of (?P<limit>\d[\d,]*) tokens\. your messages resulted in (?P<prompt>\d[\d,]*) tokens`)
	// OpenAI and Groq, with 429 or 413: more than a minute's allowance in one request. Waiting does not help, a shorter prompt does.
	longMinute = regexp.MustCompile(`(?i)^request too large for .{1,200}? on .{0,100}?tokens per min(?:ute)? \(TPM\): limit (?P<limit>\d[\d,]*), requested (?P<requested>\d[\d,]*)`)
	// vLLM.
	longMaxTokens = regexp.MustCompile(`(?i)^'max_tokens' or 'max_completion_tokens' is too large: (?P<output>\d[\d,]*)\. this model's maximum context length is (?P<limit>\d[\d,]*) tokens and your request has (?P<prompt>\d[\d,]*) input tokens`)
	longPassed    = regexp.MustCompile(`(?i)^you passed (?P<prompt>\d[\d,]*) input tokens and requested (?P<output>\d[\d,]*) output tokens\. however, the model's context length is only (?P<limit>\d[\d,]*) tokens`)
	longDecoder   = regexp.MustCompile(`(?i)^the (?:decoder |encoder )?prompt \((?:total )?length (?P<prompt>\d[\d,]*)\) is longer than the maximum model length of (?P<limit>\d[\d,]*)`)
	// llama.cpp.
	longSlot = regexp.MustCompile(`(?i)^(?:the )?request (?:\((?P<prompt>\d[\d,]*) tokens\) )?exceeds the available context size(?: \((?P<limit>\d[\d,]*) tokens\))?`)
	longFull = regexp.MustCompile(`(?i)^context size has been exceeded\.?$`)
	// Ollama. It says so only for some models; most it cuts silently.
	longOllama      = regexp.MustCompile(`(?i)^prompt too long; exceeded (?:max )?context length`)
	longOllamaInput = regexp.MustCompile(`(?i)^(?:the )?input length exceeds (?:the |maximum )?context length`)
	// Mistral.
	longMistral = regexp.MustCompile(`(?i)^prompt contains (?P<prompt>\d[\d,]*) tokens(?: and \d+ draft tokens)?, too large for model with (?P<limit>\d[\d,]*) maximum context length`)
	// Gemini.
	longGemini = regexp.MustCompile(`(?i)^(?:the )?input token count(?: \((?P<prompt>\d[\d,]*)\))? exceeds the maximum number of tokens allowed(?: \(?(?P<limit>\d[\d,]*)\)?)?`)
	// Anthropic, xAI, SGLang, Groq, LM Studio, behind OpenRouter or by themselves.
	longAnthropic      = regexp.MustCompile(`(?i)^prompt is too long: (?P<prompt>\d[\d,]*) tokens > (?P<limit>\d[\d,]*) maximum`)
	longAnthropicTotal = regexp.MustCompile("(?i)^input length and `max_tokens` exceed context limit: (?P<prompt>\\d[\\d,]*) \\+ (?P<output>\\d[\\d,]*) > (?P<limit>\\d[\\d,]*)")
	longXAI            = regexp.MustCompile(`(?i)^this model's maximum prompt length is (?P<limit>\d[\d,]*) but the request contains (?P<prompt>\d[\d,]*) tokens`)
	longSGLang         = regexp.MustCompile(`(?i)^the input \((?P<prompt>\d[\d,]*) tokens\) is longer than the model's context length \((?P<limit>\d[\d,]*) tokens\)`)
	longSGLangTotal    = regexp.MustCompile(`(?i)^requested token count exceeds the model's maximum context length of (?P<limit>\d[\d,]*) tokens\. you requested a total of (?P<requested>\d[\d,]*) tokens`)
	longGroq           = regexp.MustCompile(`(?i)^please reduce the length of the messages or completion`)
	longLMStudio       = regexp.MustCompile(`(?i)^the number of tokens to keep from the initial prompt is greater than the context length`)
)

// litellm is what LiteLLM, a proxy, puts before the sentence.
var litellm = regexp.MustCompile(`^(?:(?:litellm\.)?[A-Z]\w*(?:Error|Exception)(?:: | - ))+`)

// lengths are the numbers with which a provider refuses a prompt; 0 = not told.
type lengths struct {
	limit     int
	requested int // includes the wanted answer where the provider counts it in
	prompt    int // of requested, the prompt alone
}

// readTooLong reports whether the sentence says that the prompt is too long, and
// the numbers in it.
func readTooLong(message string, status int) (lengths, bool) {
	message = litellm.ReplaceAllString(strings.TrimSpace(message), "")
	if m := longModel.FindStringSubmatch(message); m != nil {
		return readModel(message, number(m[1])), true
	}
	for _, wording := range wordings(status) {
		if wording.MatchString(message) {
			return groups(wording, message), true
		}
	}
	return lengths{}, false
}

// readModel reads the second half of the sentence that most servers say.
func readModel(message string, limit int) lengths {
	var out lengths
	for _, wording := range []*regexp.Regexp{longOutput, longPrompt, longAsked} {
		if out = groups(wording, message); out.requested > 0 {
			break
		}
	}
	if answer := groups(longAnswer, message); out.prompt == 0 && answer.requested > 0 && answer.requested < out.requested {
		out.prompt = out.requested - answer.requested
	}
	out.limit = limit
	return out
}

func wordings(status int) []*regexp.Regexp {
	if status == http.StatusTooManyRequests {
		return []*regexp.Regexp{longMinute}
	}
	return []*regexp.Regexp{
		longInput, longConfigured, longMinute, longMaxTokens, longPassed, longDecoder, longSlot, longFull,
		longOllama, longOllamaInput, longMistral, longGemini, longAnthropic, longAnthropicTotal, longXAI,
		longSGLang, longSGLangTotal, longGroq, longLMStudio,
	}
}

// groups returns the numbers that the wording names.
func groups(wording *regexp.Regexp, message string) lengths {
	m := wording.FindStringSubmatch(message)
	if m == nil {
		return lengths{}
	}
	var out lengths
	for i, name := range wording.SubexpNames() {
		switch name {
		case "limit":
			out.limit = number(m[i])
		case "requested", "output":
			out.requested += number(m[i])
		case "prompt":
			out.prompt = number(m[i])
			out.requested += out.prompt
		}
	}
	return out
}

// number reads "8,192"; 0 if it is none that a token count could be.
func number(s string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	if err != nil || n < 0 || n > 1<<40 {
		return 0
	}
	return n
}
