package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// resourceTools returns the tool that reads resources, if the definition asks for it.
func (s *Server) resourceTools(names *tools.Namer, session *sdk.ClientSession) []*tools.Custom {
	if has := session.InitializeResult().Capabilities; !s.definition.Resources || has == nil || has.Resources == nil {
		return nil
	}
	return []*tools.Custom{{
		Definition: llm.ToolSpec{
			Name:        names.Name("read_resource"),
			Description: "Reads a resource of the server " + s.definition.Name + ". Without a uri it lists the resources and resource templates.",
			Parameters:  json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","description":"of the resource, as listed or made from a template; empty = list them"}},"additionalProperties":false}`),
		},
		Approval: core.ApprovalNever, Repeatable: true,
		Execute: func(ctx context.Context, call tools.Call) (string, error) {
			arguments, err := parseObject(call.Arguments)
			if err != nil {
				return "", err
			}
			session := s.connected()
			if session == nil {
				return "", s.notConnectedError()
			}
			uri, _ := arguments["uri"].(string)
			text, err := readResource(ctx, session, uri)
			if err != nil {
				return "", s.explainCall(ctx, err, true)
			}
			return s.hide(text), nil
		},
	}}
}

func readResource(ctx context.Context, session *sdk.ClientSession, uri string) (string, error) {
	if uri == "" {
		return listResources(ctx, session)
	}
	result, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
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
