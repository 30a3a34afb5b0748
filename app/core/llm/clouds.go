package llm

import "regexp"

// bedrockKey is the variable in which tools of AWS keep an API key of Amazon Bedrock.
const bedrockKey = "AWS_BEARER_TOKEN_BEDROCK"

// regionName is what a region may be called: it is part of a host name.
var regionName = regexp.MustCompile(`^[a-z0-9-]+$`)

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
