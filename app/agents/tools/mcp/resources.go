package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// maxEntries bounds a list of resources or prompts that a model reads.
const maxEntries = 100

// extraTools returns the tools that read resources and prompts, if the definition asks for them.
func (s *Server) extraTools(names *tools.Namer, session *sdk.ClientSession) []*tools.Custom {
	var list []*tools.Custom
	has := session.InitializeResult().Capabilities
	if s.definition.Resources && has != nil && has.Resources != nil {
		list = append(list, s.readingTool(names.Name("read_resource"),
			"Reads a resource of the server "+s.definition.Name+". Without a uri it lists the resources.",
			`{"type":"object","properties":{"uri":{"type":"string","description":"of the resource, as listed; empty = list them"}},"additionalProperties":false}`,
			s.readResource))
	}
	if s.definition.Prompts && has != nil && has.Prompts != nil {
		list = append(list, s.readingTool(names.Name("get_prompt"),
			"Reads a prompt of the server "+s.definition.Name+". Without a name it lists the prompts.",
			`{"type":"object","properties":{"name":{"type":"string","description":"of the prompt, as listed; empty = list them"},`+
				`"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"of the prompt"}},"additionalProperties":false}`,
			s.readPrompt))
	}
	return list
}

// readRequest is what the arguments of a reading tool ask for.
type readRequest struct {
	URI       string            `json:"uri"`
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments"`
}

// readingTool returns a tool that changes nothing.
func (s *Server) readingTool(name, description, schema string, read func(context.Context, *sdk.ClientSession, readRequest) (string, error)) *tools.Custom {
	return &tools.Custom{
		Definition: llm.ToolSpec{Name: name, Description: description, Parameters: json.RawMessage(schema)},
		Approval:   core.ApprovalNever, Repeatable: true,
		Execute: func(ctx context.Context, call tools.Call) (string, error) {
			var r readRequest
			if strings.TrimSpace(call.Arguments) != "" {
				if err := json.Unmarshal([]byte(call.Arguments), &r); err != nil {
					return "", fmt.Errorf("the arguments are not as the schema has them; expected a JSON object such as %s", `{}`)
				}
			}
			session := s.connected()
			if session == nil {
				return "", s.notConnectedError()
			}
			text, err := read(ctx, session, r)
			if err != nil {
				return "", s.explainCall(ctx, err, true)
			}
			return text, nil
		},
	}
}

func (s *Server) readResource(ctx context.Context, session *sdk.ClientSession, r readRequest) (string, error) {
	if r.URI == "" {
		page, err := session.ListResources(ctx, nil)
		if err != nil {
			return "", err
		}
		lines := make([]string, 0, maxEntries)
		for _, resource := range page.Resources[:min(len(page.Resources), maxEntries)] {
			lines = append(lines, describeEntry(resource.URI, resource.MIMEType, resource.Description))
		}
		return joinEntries(lines, "resources"), nil
	}
	result, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: r.URI})
	if err != nil {
		return "", err
	}
	var parts []string
	for _, content := range result.Contents {
		parts = append(parts, resourceText(content))
	}
	return strings.Join(parts, "\n"), nil
}

func (s *Server) readPrompt(ctx context.Context, session *sdk.ClientSession, r readRequest) (string, error) {
	if r.Name == "" {
		page, err := session.ListPrompts(ctx, nil)
		if err != nil {
			return "", err
		}
		lines := make([]string, 0, maxEntries)
		for _, prompt := range page.Prompts[:min(len(page.Prompts), maxEntries)] {
			var arguments []string
			for _, a := range prompt.Arguments {
				arguments = append(arguments, core.Clip(a.Name, 100))
			}
			lines = append(lines, describeEntry(prompt.Name, strings.Join(arguments, " "), prompt.Description))
		}
		return joinEntries(lines, "prompts"), nil
	}
	result, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: r.Name, Arguments: r.Arguments})
	if err != nil {
		return "", err
	}
	var parts []string
	for _, message := range result.Messages {
		parts = append(parts, fmt.Sprintf("%s: %s", message.Role, contentText(message.Content)))
	}
	return strings.Join(parts, "\n\n"), nil
}

// describeEntry returns one line of a list.
func describeEntry(name, detail, description string) string {
	line := core.Clip(name, 500)
	if detail != "" {
		line += " (" + core.Clip(detail, 200) + ")"
	}
	if description != "" {
		line += ": " + core.Clip(strings.Join(strings.Fields(description), " "), 300)
	}
	return line
}

func joinEntries(lines []string, what string) string {
	if len(lines) == 0 {
		return "there are no " + what
	}
	return strings.Join(lines, "\n")
}
