package llm_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Where requests to the clouds go, and whether they have a key.
func TestRegistryPlacesClouds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry         llm.Entry
		env           []string
		base, keyFrom string
	}{
		"bedrock, region of the entry": {llm.Entry{Provider: "bedrock", Region: "eu-central-1"}, []string{"AWS_REGION=us-east-1"},
			"https://bedrock-mantle.eu-central-1.api.aws/anthropic", ""},
		"bedrock, region of the environment": {llm.Entry{Provider: "bedrock"}, []string{"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-2"},
			"https://bedrock-mantle.us-east-1.api.aws/anthropic", ""},
		"bedrock, default region and key": {llm.Entry{Provider: "bedrock"}, []string{"AWS_DEFAULT_REGION=us-east-2", "AWS_BEARER_TOKEN_BEDROCK=k"},
			"https://bedrock-mantle.us-east-2.api.aws/anthropic", "AWS_BEARER_TOKEN_BEDROCK"},
		"bedrock behind a proxy":         {llm.Entry{Provider: "bedrock", BaseURL: "http://proxy", APIKeyEnv: "MINE"}, []string{"MINE=k"}, "http://proxy", "MINE"},
		"bedrock behind a proxy, signed": {llm.Entry{Provider: "bedrock", BaseURL: "http://proxy", Region: "us-east-1"}, nil, "http://proxy", ""},
		"vertex, everywhere": {llm.Entry{Provider: "vertex"}, []string{"GOOGLE_CLOUD_PROJECT=p"},
			"https://aiplatform.googleapis.com/v1/projects/p/locations/global", ""},
		"vertex, several regions": {llm.Entry{Provider: "vertex", Region: "eu", Project: "p"}, []string{"CLOUD_ML_REGION=us", "GOOGLE_CLOUD_PROJECT=other"},
			"https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu", ""},
		"vertex, one region": {llm.Entry{Provider: "vertex"},
			[]string{"CLOUD_ML_REGION=us-east5", "GOOGLE_CLOUD_LOCATION=us", "ANTHROPIC_VERTEX_PROJECT_ID=p", "GOOGLE_CLOUD_PROJECT=other"},
			"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5", ""},
		"vertex, location of Google's tools": {llm.Entry{Provider: "vertex", Project: "a.test:p/q"}, []string{"GOOGLE_CLOUD_LOCATION=us"},
			"https://aiplatform.us.rep.googleapis.com/v1/projects/a.test:p%2Fq/locations/us", ""},
		"vertex behind a proxy": {llm.Entry{Provider: "vertex", BaseURL: "http://proxy/v1/", APIKeyEnv: "MINE", Project: "p"}, []string{"MINE=k"},
			"http://proxy/v1/projects/p/locations/global", "MINE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.entry.Name = "m"
			got, err := newRegistry(t, []llm.Entry{tt.entry}, llm.Defaults{Env: variables(tt.env...)}).Resolve("m")
			if err != nil || got.BaseURL != tt.base || got.APIKeyEnv != tt.keyFrom {
				t.Errorf("got %q with the key in %q, %v, want %q, %q", got.BaseURL, got.APIKeyEnv, err, tt.base, tt.keyFrom)
			}
		})
	}
}

func TestRegistrySaysWhatACloudNeeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry llm.Entry
		env   []string
		want  string
	}{
		"no region":                 {llm.Entry{Provider: "bedrock"}, nil, "AWS_REGION"},
		"no region for a signature": {llm.Entry{Provider: "bedrock", BaseURL: "http://proxy"}, nil, "AWS_REGION"},
		"a region that is none":     {llm.Entry{Provider: "bedrock", Region: "us.evil.test/"}, nil, "AWS_REGION"},
		"a named key":               {llm.Entry{Provider: "bedrock", Region: "us-east-1", APIKeyEnv: "MINE"}, nil, "MINE"},
		"no project":                {llm.Entry{Provider: "vertex"}, nil, "GOOGLE_CLOUD_PROJECT"},
		"a location that is none":   {llm.Entry{Provider: "vertex", Region: "evil.test/", Project: "p"}, nil, "location"},
		"a named token":             {llm.Entry{Provider: "vertex", Project: "p", APIKeyEnv: "MINE"}, nil, "MINE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.entry.Name = "m"
			_, err := newRegistry(t, []llm.Entry{tt.entry}, llm.Defaults{Env: variables(tt.env...)}).Resolve("m")
			if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a fault that names %s", err, tt.want)
			}
		})
	}
}

// A conversation in one place is not sent to another one for its summaries.
func TestRegistryPrefersModelsOfTheSamePlace(t *testing.T) {
	t.Parallel()
	entries := []llm.Entry{
		{Name: "here", Provider: "vertex", Region: "eu", Project: "p"}, {Name: "beside", Provider: "vertex", Region: "eu", Project: "p"},
		{Name: "there", Provider: "vertex", Region: "us", Project: "p"},
	}
	for defaultName, want := range map[string]bool{"beside": true, "there": false} {
		r := newRegistry(t, entries, llm.Defaults{Model: defaultName})
		if _, got := r.Preferred("here", llm.PreferDefault); got != want {
			t.Errorf("%s: got %v, want %v", defaultName, got, want)
		}
	}
	if got, err := newRegistry(t, nil, llm.Defaults{Env: variables("AWS_REGION=us-east-1")}).Resolve("bedrock/anthropic.claude-opus-5"); err != nil || got.Provider != "bedrock" || got.Model != "anthropic.claude-opus-5" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Claude has the limits of images on every cloud, whatever the operator calls it.
func TestImagesOfClouds(t *testing.T) {
	t.Parallel()
	small, wide := core.Part{Type: core.PartImage, Width: 8_000}, core.Part{Type: core.PartImage, Width: 8_001}
	for _, name := range []string{"anthropic", "bedrock", "vertex"} {
		info := llm.Info{Name: "house", Provider: name, Images: true}
		if !info.Takes(small) || info.Takes(wide) {
			t.Errorf("%s: got %v, %v, want the small image only", name, info.Takes(small), info.Takes(wide))
		}
	}
}
