package wire_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// Models of the clouds in the settings answer, with what their environment has: a key, credentials,
// or a token.
func TestCloudProviders(t *testing.T) {
	for name, tt := range map[string]struct {
		model config.Model
		cloud provider.Cloud
		path  string // of the base URL
		env   map[string]string
	}{
		"bedrock, key": {config.Model{Provider: "bedrock", Region: "us-east-1"}, provider.Bedrock{Key: "key"}, "/anthropic",
			map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "key"}},
		"bedrock, signed": {config.Model{Provider: "bedrock"}, provider.Bedrock{Region: "eu-central-1", AccessKeyID: "id", SecretKey: "secret"}, "/anthropic",
			map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}},
		"vertex": {config.Model{Provider: "vertex", Project: "house", Region: "eu", APIKeyEnv: "TOKEN"}, provider.Vertex{Project: "house", Location: "eu", Token: "token"}, "",
			map[string]string{"TOKEN": "token"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "")
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			server := must.Get(provider.New(provider.Options{Cloud: tt.cloud}))(t)
			defer server.Close()
			tt.model.Name, tt.model.Model, tt.model.BaseURL = "cloud", "claude-opus-5-5", server.URL+tt.path
			models := must.Get(wire.OpenModels(t.Context(), config.Config{DefaultLLM: "cloud", Models: []config.Model{tt.model}}, wire.ModelOptions{Counter: tokens.NewCounter()}))(t)
			m := must.Get(models.Get(""))(t)
			res, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}}), nil)
			if err != nil || res.Text != "answer to: hi" || m.Info().Provider != tt.model.Provider {
				t.Errorf("got %q of %s, %v", res.Text, m.Info().Provider, err)
			}
		})
	}
}
