package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// extraTools returns the tools that read resources and prompts, if the definition asks for them.
func (s *Server) extraTools(names *tools.Namer, session *sdk.ClientSession) []*tools.Custom {
	var list []*tools.Custom
	has := session.InitializeResult().Capabilities
	if s.definition.Resources && has != nil && has.Resources != nil {
		list = append(list, s.readingTool(names.Name("read_resource"),
			"Reads a resource of the server "+s.definition.Name+". Without a uri it lists the resources and resource templates.",
			`{"type":"object","properties":{"uri":{"type":"string","description":"of the resource, as listed or made from a template; empty = list them"}},"additionalProperties":false}`,
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
			return s.hide(text), nil
		},
	}
}

func (s *Server) readResource(ctx context.Context, session *sdk.ClientSession, r readRequest) (string, error) {
	if r.URI == "" {
		return listResources(ctx, session)
	}
	result, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: r.URI})
	if err != nil {
		return "", err
	}
	var parts []string
	for _, content := range result.Contents {
		if content != nil {
			parts = append(parts, content.Text)
		}
	}
	result.Contents = nil // the SDK keeps the result of each uri
	return strings.Join(parts, "\n"), nil
}

// listResources returns the resources and the resource templates.
func listResources(ctx context.Context, session *sdk.ClientSession) (string, error) {
	resources, err := listEntries("resources", func(cursor string) (lines []string, next string, err error) {
		page, err := session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		for _, resource := range page.Resources {
			if resource != nil {
				lines = append(lines, entryText(resource.URI, resource.MIMEType, resource.Description))
			}
		}
		page.Resources = nil // the SDK keeps the page of each cursor
		return lines, page.NextCursor, nil
	})
	if err != nil {
		return "", err
	}
	templates, err := listEntries("resource templates", func(cursor string) (lines []string, next string, err error) {
		page, err := session.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		for _, template := range page.ResourceTemplates {
			if template != nil {
				lines = append(lines, entryText(template.URITemplate, template.Name, template.Description))
			}
		}
		page.ResourceTemplates = nil
		return lines, page.NextCursor, nil
	})
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
		err = nil // templates are optional, and servers refuse unknown methods by different codes
	}
	resources = cmp.Or(resources, "there are no resources")
	if templates != "" {
		resources += "\n\nResource templates (put values in place of {...} and read the uri that results):\n" + templates
	}
	return resources, err
}

func (s *Server) readPrompt(ctx context.Context, session *sdk.ClientSession, r readRequest) (string, error) {
	if r.Name == "" {
		return listPrompts(ctx, session)
	}
	result, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: r.Name, Arguments: r.Arguments})
	if err != nil {
		return "", err
	}
	var parts []string
	for _, message := range result.Messages {
		if message != nil {
			parts = append(parts, fmt.Sprintf("%s: %s", message.Role, contentText([]sdk.Content{message.Content})))
		}
	}
	return strings.Join(parts, "\n\n"), nil
}

// listPrompts returns the prompts with the names of their arguments.
func listPrompts(ctx context.Context, session *sdk.ClientSession) (string, error) {
	prompts, err := listEntries("prompts", func(cursor string) (lines []string, next string, err error) {
		page, err := session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		for _, prompt := range page.Prompts {
			if prompt != nil {
				lines = append(lines, entryText(prompt.Name, argumentNames(prompt), prompt.Description))
			}
		}
		page.Prompts = nil
		return lines, page.NextCursor, nil
	})
	return cmp.Or(prompts, "there are no prompts"), err
}

// argumentNames returns the names of a prompt's arguments.
func argumentNames(prompt *sdk.Prompt) string {
	var names []string
	for _, argument := range prompt.Arguments {
		if argument != nil {
			names = append(names, core.Clip(argument.Name, 100))
		}
	}
	return strings.Join(names, " ")
}
