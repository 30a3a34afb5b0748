package providerhttp_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

func TestDroppedThoughts(t *testing.T) {
	for name, tt := range map[string]struct {
		event string
		want  *llm.DroppedThoughts
	}{
		"none":       {`{"input_transformations":[]}`, nil},
		"null":       {`{"input_transformations":null}`, nil},
		"absent":     {`{}`, nil},
		"odd":        {`{"input_transformations":{"type":"thinking_dropped"}}`, nil},
		"kept":       {`{"input_transformations":[{"type":"thinking_mismatch_allowed","reason":"prefix_binding_mismatch"}]}`, nil},
		"new type":   {`{"input_transformations":[{"type":"image_resized","path":"messages.0.content.0"}]}`, nil},
		"two":        {`{"input_transformations":[{"type":"thinking_dropped","reason":"prefix_binding_mismatch"},{"type":"thinking_dropped","reason":"prefix_binding_mismatch"}]}`, dropped(llm.DropPrefix, 2)},
		"model":      {`{"input_transformations":[{"type":"thinking_dropped","reason":"model_binding_mismatch"}]}`, dropped(llm.DropModel, 1)},
		"account":    {`{"input_transformations":[{"type":"thinking_dropped","reason":"organization_binding_mismatch"}]}`, dropped(llm.DropOrganization, 1)},
		"end user":   {`{"input_transformations":[{"type":"thinking_dropped","reason":"end_user_binding_mismatch"}]}`, dropped(llm.DropEndUser, 1)},
		"OpenAI's":   {`{"input_transformations":[{"type":"reasoning","action":"removed","reason":"prefix_mismatch"}]}`, dropped(llm.DropPrefix, 1)},
		"its others": {`{"input_transformations":[{"type":"reasoning","action":"kept","reason":"prefix_mismatch"},{"type":"reasoning","action":"removed","reason":"x"}]}`, dropped(llm.DropOther, 1)},
		"new reason": {`{"input_transformations":[{"type":"thinking_dropped","reason":"moon"}]}`, dropped(llm.DropOther, 1)},
	} {
		var answer struct {
			Changes providerhttp.Transformations `json:"input_transformations"`
		}
		if err := providerhttp.IgnoreType(json.Unmarshal([]byte(tt.event), &answer)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, answer.Changes.ToCore()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func dropped(reason llm.DropReason, n int) *llm.DroppedThoughts {
	return &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: map[llm.DropReason]int{reason: n}}
}
