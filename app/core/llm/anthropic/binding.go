package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"bobbin/app/core/llm"
)

// bindsThoughts reports whether the API is asked to leave out thoughts behind another prompt than that
// of their making, instead of refusing the request, and to report them.
func (m *Model) bindsThoughts(req llm.Request) bool {
	return req.ChecksPrefix && (!m.options.isCloud() || m.options.Cloud.BindingControls)
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

// toDropReason returns the API's word for why it left out a thought in ours.
func toDropReason(word string) llm.DropReason {
	switch sdk.BetaThinkingDroppedInputTransformationReason(word) {
	case sdk.BetaThinkingDroppedInputTransformationReasonPrefixBindingMismatch:
		return llm.DropPrefix
	case sdk.BetaThinkingDroppedInputTransformationReasonModelBindingMismatch:
		return llm.DropModel
	case sdk.BetaThinkingDroppedInputTransformationReasonOrganizationBindingMismatch:
		return llm.DropOrganization
	case sdk.BetaThinkingDroppedInputTransformationReasonEndUserBindingMismatch:
		return llm.DropEndUser
	default:
		return llm.DropOther
	}
}

// transformations are the changes that the API made to the prompt, of a message_start or a
// message_delta; nil = none are reported.
type transformations struct {
	List []sdk.BetaInputTransformationUnion `json:"input_transformations"`
}

// readDropped returns the thoughts that an event reports as left out; nil = none. Raw is a
// message, or an event with the same member.
func readDropped(raw []byte) *llm.DroppedThoughts {
	var t transformations
	if json.Unmarshal(raw, &t) != nil { // it is a report only
		return nil
	}
	reasons := map[llm.DropReason]int{}
	for _, change := range t.List {
		if change.Type != "thinking_dropped" {
			continue
		}
		reasons[toDropReason(change.Reason)]++
	}
	if len(reasons) == 0 {
		return nil
	}
	return &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: reasons}
}
