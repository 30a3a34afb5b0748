package anthropic

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// defaultMaxOutput is the output limit of a request that sets none, to a model of
// which none is known: the API wants one, and every model takes this.
const defaultMaxOutput = 4_096

// Options say which model is called, and how. BaseURL is where /v1/messages is, without it; a /v1 at its
// end is ignored. Thinking: see the package.
type Options = providerhttp.Options

// Cloud is a provider that serves Claude over the Messages API in its own place, with its own
// authorization. Zero = Anthropic itself. Thoughts belong to the provider that made them. System
// messages among the others and compactions are not known to work on any cloud, and are not used.
type Cloud struct {
	Provider string // what it is called
	// Path is where requests go, below the base URL; empty = v1/messages. A path names the model,
	// which is not in the body then.
	Path    string
	Version string // anthropic_version in the body; empty = only the header of Anthropic's own API
	// BindingControls: it knows the beta that leaves thoughts out instead of refusing a request.
	BindingControls bool
	// Authorize is that of the Peer, for requests without an APIKey, which is sent as a bearer token.
	Authorize func(*http.Request) error
}

// Model is one model of Anthropic.
type Model struct {
	options Options
	cloud   Cloud

	decidesThinking bool // the model decides how much it thinks; later ones refuse a budget
	fixedSampling   bool // the model refuses a temperature
	peer            *providerhttp.Peer
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*Model, error) { return NewOnCloud(options, Cloud{}) }

// NewOnCloud is New for a model that the cloud serves.
func NewOnCloud(o Options, cloud Cloud) (*Model, error) {
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	o, err := o.Complete(cmp.Or(cloud.Provider, llm.ProviderAnthropic), "https://api.anthropic.com")
	if err != nil {
		return nil, err
	}
	if o.Thinking != 0 && o.Thinking < minThinking {
		return nil, core.Errorf(core.ErrInvalid, "model %s: a thinking budget of %d tokens is too small; use %d or more, or 0 for none", o.Name, o.Thinking, minThinking)
	}
	isOwn := cloud.Provider == ""
	// Thinking excludes sampling parameters; schemas came with Claude 4.5.
	_, version := llm.ClaudeOf(o.Model)
	decidesThinking, fixedSampling := version.IsSince(4, 6), version.IsSince(4, 7)
	out := []llm.Parameter{llm.Seed, llm.ReasoningEffort, llm.JSONObject, llm.BlankStop}
	if fixedSampling || o.Thinking > 0 {
		out = append(out, llm.Temperature, llm.TopP)
	} else {
		out = append(out, llm.HighTemperature, llm.TopPBeside)
	}
	if !version.IsSince(4, 5) { // as schemas of answers, so those of tools
		out = append(out, llm.JSONSchema, llm.StrictTools)
	}
	o.Info.Lacks = out
	o.Info.ThoughtOrigin = o.Provider + "/" + o.Model
	o.Info.SystemMessages = llm.PrefixContractOf(o.Model).Binds() && isOwn // Opus 4.8 takes them, too, and binds no thoughts
	if o.Info.SystemMessages {
		o.Info.ToolChanges = llm.ToolsChangeable
	}
	o.Info.Compacts = version.IsSince(4, 6) && !version.IsSince(5, 6) && isOwn // by the page compaction-on-demand
	o.Info.Account = providerhttp.Account(o.BaseURL, o.APIKey)
	m := &Model{options: o, cloud: cloud, decidesThinking: decidesThinking, fixedSampling: fixedSampling, peer: o.NewPeer()}
	if o.APIKey == "" {
		m.peer.Authorize = cloud.Authorize
	}
	return m, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if req.Compact {
		// The API refuses a prefilled answer beside a compaction.
		req.Stop, req.ResponseFormat, req.ToolChoice, req.ParallelToolCalls = nil, nil, core.ToolChoiceAuto, nil
	}
	return providerhttp.Stream(func(emit func(llm.Delta) bool) *llm.Error {
		err := m.callProvider(ctx, req, emit)
		if err == nil || err.Kind != llm.KindInvalid || err.Status != http.StatusBadRequest || !strings.Contains(err.Message, "thinking") || m.countThoughts(req) == 0 {
			return err // else it was refused for the thoughts in it, and such a conversation could never go on
		}
		if !emit(llm.Delta{Dropped: &llm.DroppedThoughts{Contract: llm.PrefixRefuses, Reasons: map[llm.DropReason]int{llm.DropPrefix: m.countThoughts(req)}}}) {
			return nil
		}
		return m.callProvider(ctx, req.WithoutThoughts(), emit)
	})
}

// callProvider sends the request and emits the answer.
func (m *Model) callProvider(ctx context.Context, req llm.Request, emit func(llm.Delta) bool) *llm.Error {
	body, err := m.requestBody(req)
	if err != nil {
		return m.peer.Invalid(err)
	}
	if req.Compact {
		emitAll := emit
		emit = func(d llm.Delta) bool { // without the answer
			d.Text, d.Reasoning, d.Part, d.ToolCall = "", "", nil, nil
			return d == (llm.Delta{}) || emitAll(d)
		}
	}
	prepare := func(header http.Header) {
		header.Set("Anthropic-Version", "2023-06-01")
		add := func(isNeeded bool, beta string) {
			if isNeeded {
				header.Add("Anthropic-Beta", beta)
			}
		}
		given, turns := req.SplitCompaction()
		add(m.bindsThoughts(req), "thinking-binding-controls-2026-08-01")
		add(given != nil || req.Compact, "compact-2026-09-04")
		add(slices.ContainsFunc(turns, func(turn llm.Message) bool { return len(turn.AddedTools) > 0 }), "inline-tools-2026-09-15")
		add(slices.ContainsFunc(turns, func(turn llm.Message) bool { return len(turn.RemovedTools) > 0 }), "mid-conversation-tool-changes-2026-07-01")
		if key := m.options.APIKey; key != "" && m.cloud.Provider == "" {
			header.Set("X-Api-Key", key)
		} else if key != "" {
			header.Set("Authorization", "Bearer "+key)
		}
	}
	failure := m.peer.Post(ctx, "/"+cmp.Or(m.cloud.Path, "v1/messages"), body, prepare, func(body io.Reader, refusal func([]byte) *llm.Error) error {
		shared := providerhttp.Answer{Emit: emit, Refusal: refusal}
		return (&answer{Answer: shared, origin: m.options.Info.ThoughtOrigin, provider: m.options.Provider, compacts: req.Compact}).read(body)
	})
	return asCompactionRefusal(req, req.ClassifyRefusal(failure))
}

// asCompactionRefusal returns the error of a request; where the API refused the compaction with
// which it begins, with that kind: the block, not the parameter of the name, nor a thought behind
// the block.
func asCompactionRefusal(req llm.Request, e *llm.Error) *llm.Error {
	given, _ := req.SplitCompaction()
	if given == nil || e == nil || e.Kind != llm.KindInvalid || e.Status != 0 && e.Status != http.StatusBadRequest {
		return e
	}
	text := e.Message
	isParameter := strings.HasPrefix(text, "compaction:") || strings.HasPrefix(text, "compaction.")
	if slices.Contains([]string{"compaction_signature_invalid", "compaction_content_mismatch", "compaction_block_misplaced"}, e.Code) ||
		strings.Contains(text, "compaction") && !isParameter && !strings.Contains(text, "thinking` block") {
		return e.WithKind(llm.KindCompactionRefused)
	}
	return e
}
