package llm_test

import (
	"fmt"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/tests/compare"
)

func TestPrefixContractByName(t *testing.T) {
	for model, want := range map[string]llm.PrefixContract{
		"claude-opus-5-5":                    llm.PrefixRefuses,
		"claude-sonnet-5-5-20260901":         llm.PrefixRefuses,
		"us.anthropic.claude-haiku-5-5-v1:0": llm.PrefixRefuses,
		"anthropic/claude-fable-5.1":         llm.PrefixRefuses,
		"claude-mythos-5-2":                  llm.PrefixRefuses,
		"claude-opus-6":                      llm.PrefixRefuses,
		"claude-opus-5":                      "",
		"claude-sonnet-5-20260301":           "",
		"claude-fable-5":                     "",
		"claude-3-5-sonnet-20241022":         "",
		"claude-mythos-preview":              "",
		"gpt-6.2":                            llm.PrefixDrops,
		"gpt-6.2-mini":                       llm.PrefixDrops,
		"gpt-7":                              llm.PrefixDrops,
		"gpt-6":                              "",
		"gpt-5.4-pro":                        "",
		"gpt-oss-120b":                       "",
		"gpt-4o-2024-08-06":                  "",
		"qwen3":                              "",
		"":                                   "",
		"claude-":                            "",
		"gpt-":                               "",
		"claude-opus-99999999999999999999999999999": "",
	} {
		compare.Equal(t, fmt.Sprintf("%q", model), want, llm.PrefixContractOf(model))
	}
}
