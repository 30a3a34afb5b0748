package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// compactionRequest returns the request without what only shapes an answer. The format and the
// effort stay: reasoning in the prompt is bound to them.
func compactionRequest(req llm.Request) llm.Request {
	req.ToolChoice, req.ParallelToolCalls = core.ToolChoiceAuto, nil
	return req
}

// promptItems returns the messages of the request as items, with the compaction before them and
// what asks for one behind them.
func (m *Model) promptItems(req llm.Request) (sdk.ResponseInputParam, error) {
	given, turns := req.SplitCompaction()
	items, err := m.inputItems(turns)
	if err != nil {
		return nil, err
	}
	if given != nil {
		items = slices.Insert(items, 0, compactionItem(*given))
	}
	if req.Compact {
		trigger := sdk.NewResponseInputItemCompactionTriggerParam()
		items = append(items, sdk.ResponseInputItemUnionParam{OfCompactionTrigger: &trigger})
	}
	return items, nil
}

// compactionItem returns a compaction as it goes back.
func compactionItem(p core.Part) sdk.ResponseInputItemUnionParam {
	item := sdk.ResponseInputItemParamOfCompaction(p.Signature)
	if p.Name != "" {
		item.OfCompaction.ID = param.NewOpt(p.Name)
	}
	return item
}

// addCompaction keeps an item of compaction.
func (a *answer) addCompaction(came sdk.ResponseOutputItemUnion) {
	a.Compaction.Add(core.Part{Name: came.ID, Signature: came.EncryptedContent, Origin: a.origin})
}

// skipLarge reads the usage of a piece of the answer that is not decoded for its size.
func (a *answer) skipLarge(data []byte) {
	var e struct {
		Type     string            `json:"type"`
		Object   string            `json:"object"`
		Usage    sdk.ResponseUsage `json:"usage"`
		Response struct {
			Usage sdk.ResponseUsage `json:"usage"`
		} `json:"response"`
	}
	if json.Unmarshal(data, &e) != nil {
		return // it broke off: the stream ends without a last event
	}
	switch {
	case e.Object == "response":
		a.last = &llm.Delta{Usage: toUsage(e.Usage)}
	case slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, e.Type):
		a.last = &llm.Delta{Usage: toUsage(e.Response.Usage)}
	}
}

// endCompaction ends an answer that is a compaction.
func (a *answer) endCompaction() error {
	stopped := ""
	if finish := a.last.Finish; finish != core.FinishStop && finish != core.FinishToolCalls {
		stopped = string(finish)
	}
	return a.Compaction.End(*a.last, stopped, a.EmitDelta)
}

// asCompactionRefusal returns the error of a request; where the API refused the compaction with
// which it begins, with that kind.
func (m *Model) asCompactionRefusal(req llm.Request, e *llm.Error) *llm.Error {
	given, _ := req.SplitCompaction()
	inStream := e != nil && e.Kind == llm.KindInvalid && e.Status == 0
	if given == nil || !inStream && !isRequestRefused(e) {
		return e
	}
	namesItem := strings.Contains(strings.ReplaceAll(e.Message, "compaction_trigger", ""), "compaction")
	if !namesItem && (!isEncryptionRefused(e) || m.namesReasoning(req, e.Message)) {
		return e
	}
	return e.RefusedCompaction()
}

// namesReasoning reports whether a refusal names an item of reasoning in the request.
func (m *Model) namesReasoning(req llm.Request, message string) bool {
	words := strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" '\"`.,:;()[]", r) })
	return slices.ContainsFunc(req.Messages, func(turn llm.Message) bool {
		return slices.ContainsFunc(m.keptItems(turn), func(kept keptItem) bool {
			return kept.reasoning != nil && kept.reasoning.ID != "" && slices.Contains(words, kept.reasoning.ID)
		})
	})
}
