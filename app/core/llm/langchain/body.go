package langchain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core/llm/exchange"
)

// object is a JSON object whose members keep their order and their bytes.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// parseObject takes a JSON object apart.
func parseObject(text []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	var out object
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		out = append(out, member{fmt.Sprint(key), value})
	}
	return out, nil
}

// get returns the member's value; nil if there is none.
func (o *object) get(key string) json.RawMessage {
	for _, m := range *o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// set replaces the member, or appends it.
func (o *object) set(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	for i := range *o {
		if (*o)[i].key == key {
			(*o)[i].value = raw
			return nil
		}
	}
	*o = append(*o, member{key, raw})
	return nil
}

// drop takes the member away.
func (o *object) drop(key string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return m.key == key })
}

// MarshalJSON puts the object together again.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(m.value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// edit turns the body that langchaingo built into the one that is sent.
func (x *conversation) edit(built []byte) ([]byte, error) {
	body, err := parseObject(built)
	if err != nil {
		return nil, err
	}
	options := x.model.options
	// Temperature 0 was langchaingo's idea (O13).
	body.drop("temperature")
	changes := maps.Clone(options.Extra)
	if changes == nil {
		changes = map[string]any{}
	}
	changes["model"] = options.Model
	changes["stream"] = true
	if !x.model.dialect.noStreamOptions {
		changes["stream_options"] = map[string]bool{"include_usage": true}
	}
	if t := x.req.Temperature; t != nil && !fixedTemperature(options.Model) {
		changes["temperature"] = *t
	}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		if err := body.set(key, changes[key]); err != nil {
			return nil, err
		}
	}
	if x.model.dialect.signatures {
		if err := x.addSignatures(&body); err != nil {
			return nil, err
		}
	}
	return body.MarshalJSON()
}

// reasoningModel names the models of OpenAI that refuse any temperature.
var reasoningModel = regexp.MustCompile(`^(?:o\d|gpt-5)`)

func fixedTemperature(model string) bool {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return reasoningModel.MatchString(model) && !strings.Contains(model, "-chat")
}

// foreignSignature is what Google documents for calls that its model did not make.
const foreignSignature = "skip_thought_signature_validator"

// addSignatures gives the tool calls back the signatures with which they came.
// Gemini 3 and later refuse a turn whose first call has none.
func (x *conversation) addSignatures(body *object) error {
	signatures := x.signatures()
	if len(signatures) == 0 {
		return nil
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(body.get("messages"), &messages); err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	for i, raw := range messages {
		signed, err := signMessage(raw, signatures)
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		messages[i] = signed
	}
	return body.set("messages", messages)
}

// signatures returns the signature of each tool call that has one, by its id.
func (x *conversation) signatures() map[string]string {
	out := map[string]string{}
	for _, turn := range x.req.Messages {
		signed := false
		for _, c := range turn.ToolCalls {
			if c.Signature != "" {
				out[x.model.callID(c.ID)] = c.Signature
				signed = true
			}
		}
		if len(turn.ToolCalls) > 0 && !signed && wantsSignature(x.model.options.Model) {
			out[x.model.callID(turn.ToolCalls[0].ID)] = foreignSignature
		}
	}
	return out
}

func wantsSignature(model string) bool {
	model = strings.TrimPrefix(strings.ToLower(model), "models/")
	return !strings.HasPrefix(model, "gemini-1") && !strings.HasPrefix(model, "gemini-2")
}

// signMessage returns the message with the signatures added to its tool calls;
// without any, its bytes are left alone.
func signMessage(raw json.RawMessage, signatures map[string]string) (json.RawMessage, error) {
	message, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	var calls []object
	for _, text := range exchange.Elements(message.get("tool_calls")) {
		call, err := parseObject(text)
		if err != nil {
			return nil, err
		}
		var id string
		if err := json.Unmarshal(call.get("id"), &id); err != nil {
			return nil, err
		}
		if s := signatures[id]; s != "" {
			extra := map[string]any{"google": map[string]string{"thought_signature": s}}
			if err := call.set("extra_content", extra); err != nil {
				return nil, err
			}
		}
		calls = append(calls, call)
	}
	if len(calls) == 0 {
		return raw, nil
	}
	if err := message.set("tool_calls", calls); err != nil {
		return nil, err
	}
	return message.MarshalJSON()
}
