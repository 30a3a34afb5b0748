package llm

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"bobbin/app/core"
)

// bedrockKey is the variable in which tools of AWS keep an API key of Amazon Bedrock.
const bedrockKey = "AWS_BEARER_TOKEN_BEDROCK"

// regionName is what a region may be called: it is part of a host name.
var regionName = regexp.MustCompile(`^[a-z0-9-]+$`)

// onBedrock fills in the region and the address of Amazon Bedrock. Without a key requests are signed
// with the credentials that AWS's tools find.
func (e Entry) onBedrock(env func(string) string) (Entry, error) {
	e.Region = cmp.Or(e.Region, env("AWS_REGION"), env("AWS_DEFAULT_REGION"))
	if env(e.APIKeyEnv) == "" {
		e.APIKeyEnv = ""
	}
	if e.BaseURL != "" && e.APIKeyEnv != "" {
		return e, nil
	}
	if !regionName.MatchString(e.Region) {
		return e, core.Errorf(core.ErrInvalid, "model %s needs a region of AWS: set region in its entry of models, or AWS_REGION", e.Name)
	}
	if e.BaseURL == "" {
		e.BaseURL = "https://bedrock-mantle." + e.Region + ".api.aws/anthropic"
	}
	return e, nil
}

// onVertex fills in the location, the project, and the address of both at Google Vertex AI.
func (e Entry) onVertex(env func(string) string) (Entry, error) {
	e.Region = cmp.Or(e.Region, env("CLOUD_ML_REGION"), env("GOOGLE_CLOUD_LOCATION"), "global")
	e.Project = cmp.Or(e.Project, env("ANTHROPIC_VERTEX_PROJECT_ID"), env("GOOGLE_CLOUD_PROJECT"))
	if e.Project == "" {
		return e, core.Errorf(core.ErrInvalid, "model %s needs a project of Google Cloud: set project in its entry of models, or GOOGLE_CLOUD_PROJECT", e.Name)
	}
	if !regionName.MatchString(e.Region) {
		return e, core.Errorf(core.ErrInvalid, "model %s: the region is not a location of Google Cloud", e.Name)
	}
	base := strings.TrimSuffix(strings.TrimRight(cmp.Or(e.BaseURL, vertexURL(e.Region)), "/"), "/v1")
	e.BaseURL = base + "/v1/projects/" + url.PathEscape(e.Project) + "/locations/" + e.Region
	return e, nil
}

// vertexURL returns the address of a location.
func vertexURL(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu": // several regions
		return "https://aiplatform." + location + ".rep.googleapis.com"
	default:
		return "https://" + location + "-aiplatform.googleapis.com"
	}
}
