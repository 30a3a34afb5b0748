package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// assignKeys reads auth.keys: a list of {name, secret} or "name:secret", or one
// text of the latter with commas. Its errors hold no secrets.
func assignKeys(field *[]APIKey, raw any) error {
	if s, ok := raw.(string); ok {
		raw = anyList(splitList(s))
	}
	items, ok := raw.([]any)
	if !ok {
		return errors.New("write a list of {name, secret}, or name:secret,name:secret")
	}
	var found faults
	var keys []APIKey
	for i, item := range items {
		key, err := oneKey(item)
		if err != nil {
			found.addFault(fmt.Sprintf("auth.keys[%d]", i), "%s", err)
		}
		keys = append(keys, key)
	}
	*field = keys
	return errors.Join(found...)
}

func anyList(texts []string) []any {
	list := []any{}
	for _, s := range texts {
		list = append(list, s)
	}
	return list
}

func oneKey(raw any) (APIKey, error) {
	switch v := raw.(type) {
	case string:
		name, secret, ok := strings.Cut(v, ":")
		if !ok {
			return APIKey{}, errors.New("write name:secret; there is no colon")
		}
		return APIKey{Name: strings.TrimSpace(name), Secret: NewSecret(strings.TrimSpace(secret))}, nil
	case map[string]any:
		name, named := v["name"].(string)
		secret, known := v["secret"].(string)
		if !named || !known || len(v) != 2 {
			return APIKey{}, errors.New("write name and secret, both as text in quotes, and nothing else")
		}
		return APIKey{Name: name, Secret: NewSecret(secret)}, nil
	default:
		return APIKey{}, errors.New("write {name: …, secret: …} or name:secret")
	}
}

// assignModels reads models: a list of entries, or a text that holds one in YAML
// or JSON.
func assignModels(field *[]Model, raw any) error {
	if s, ok := raw.(string); ok {
		raw = nil
		if err := yaml.Unmarshal([]byte(s), &raw); err != nil {
			return errors.New("write a list of models, in YAML or JSON")
		}
	}
	items, ok := raw.([]any)
	if !ok {
		return errors.New("write a list of models, each with a name and a provider")
	}
	var found faults
	var models []Model
	for i, item := range items {
		at := fmt.Sprintf("models[%d]", i)
		entry, ok := item.(map[string]any)
		if !ok {
			found.addFault(at, "write keys and values, such as name: fast")
			continue
		}
		models = append(models, oneModel(at, entry, &found))
	}
	*field = models
	return errors.Join(found...)
}

// oneModel reads an entry of models; at is its key.
func oneModel(at string, entry map[string]any, found *faults) Model {
	var model Model
	fields := modelFields()
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	for _, name := range sortedKeys(entry) {
		i := slices.Index(names, name)
		switch {
		case i < 0:
			found.addFault(at+"."+name, "%s", unknownKey(name, names))
		case entry[name] == nil:
		case name == "api_key_env": // may hold a key by mistake: its value is in no error
			text, ok := entry[name].(string)
			found.checkKey(ok, at+"."+name, "write the name of an environment variable")
			model.APIKeyEnv = text
		default:
			if err := assignValue(fields[i].field(&model), entry[name]); err != nil {
				found.addFault(at+"."+name, "%s", err)
			}
		}
	}
	return model
}
