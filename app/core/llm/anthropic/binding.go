package anthropic

import (
	sdk "github.com/anthropics/anthropic-sdk-go"

	"bobbin/app/core/llm"
)

// bindsThoughts reports whether the API is asked to leave out thoughts behind another prompt than that
// of their making, instead of refusing the request, and to report them.
func (m *Model) bindsThoughts(req llm.Request) bool {
	return req.ChecksPrefix && (m.cloud.Provider == "" || m.cloud.BindingControls)
}

// dropMismatches says so in the thinking configuration; without one the API refuses the request, and
// Stream sends it without thoughts.
func dropMismatches(thinking sdk.ThinkingConfigParamUnion) {
	binding := map[string]any{"block_binding": sdk.BetaThinkingBlockBindingParam{PrefixMismatchBehavior: sdk.BetaThinkingPrefixMismatchBehaviorDropBlock}}
	switch {
	case thinking.OfAdaptive != nil:
		thinking.OfAdaptive.SetExtraFields(binding)
	case thinking.OfEnabled != nil:
		thinking.OfEnabled.SetExtraFields(binding)
	}
}

// refusedAll tells that a prompt was refused for its thoughts, so that all of them are left out.
func (m *Model) refusedAll(req llm.Request) *llm.DroppedThoughts {
	n := 0
	for _, turn := range req.Messages {
		n += len(m.thinkingBlocks(turn))
	}
	return &llm.DroppedThoughts{Contract: llm.PrefixRefuses, Reasons: map[llm.DropReason]int{llm.DropPrefix: n}}
}
