package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/api/openapi"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// apiCommand calls the operations that have no command of their own.
func (p *program) apiCommand() *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "api [operation] [name=value]…",
		Short: "Call any operation of the API, or list them",
		Long: "Calls an operation of the HTTP API by its id, and prints the JSON of the answer, or a stream as it arrives.\n" +
			"Parameters and members of the body are given by their names. Without an operation it lists all of them;\n" +
			"--help after an operation describes it.",
		Example: "  bobbin api createMemory --help\n" +
			"  bobbin api createMemory content=\"the inspection is on Friday\" user_id=ann\n" +
			"  bobbin api planContext id=01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 policy=sliding\n" +
			"  bobbin api createSession --body session.json",
		ValidArgsFunction: completeOperations,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.listOperations()
			}
			op, err := findOperation(args[0])
			if err != nil {
				return err
			}
			call, err := p.buildCall(op, args[1:], file)
			if err != nil {
				return err
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				response, err := s.client.Do(ctx, call)
				if err != nil {
					return withFieldErrors(err)
				}
				defer response.Body.Close()
				media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
				if media != "application/json" {
					_, err := io.Copy(p.dataOutput(strings.HasPrefix(media, "text/")), response.Body)
					return err
				}
				data, err := io.ReadAll(response.Body)
				if err != nil {
					return err
				}
				return p.printJSON(json.RawMessage(data))
			})
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		for _, arg := range args {
			if op, err := findOperation(arg); err == nil {
				p.describeOperation(op)
				return
			}
		}
		cmd.Root().HelpFunc()(cmd, args)
	})
	cmd.Flags().StringVar(&file, "body", "", "send this `file` as the body; - is the standard input")
	return p.withJSON(cmd)
}

// listOperations lists all operations by their tags; with --json it prints the OpenAPI document.
func (p *program) listOperations() error {
	if p.json {
		return p.printJSON(json.RawMessage(openapi.New().JSON))
	}
	width, _ := p.terminalSize()
	for _, group := range openapi.New().Groups {
		fmt.Fprintf(p.Out, "%s\n", group.Name)
		var lines [][2]string
		for _, op := range group.Operations {
			lines = append(lines, [2]string{op.ID, op.Summary})
		}
		writePairs(p.Out, lines, width)
	}
	return nil
}

// findOperation returns the operation with the id.
func findOperation(id string) (openapi.Operation, error) {
	var known []string
	for _, group := range openapi.New().Groups {
		for _, op := range group.Operations {
			if op.ID == id {
				return op, nil
			}
			known = append(known, op.ID)
		}
	}
	return openapi.Operation{}, core.Errorf(core.ErrInvalid, "the API has no operation %s; %s", core.Literal(id), core.Suggest(id, known, "", programName()+" api lists all"))
}

// describeOperation prints what an operation does, and its parameters.
func (p *program) describeOperation(op openapi.Operation) {
	width, _ := p.terminalSize()
	fmt.Fprintf(p.Out, "%s: %s\n%s %s\n", op.ID, op.Summary, op.Method, op.Path)
	if op.Description != "" {
		fmt.Fprintf(p.Out, "\n%s\n", term.Wrap(strings.TrimSpace(op.Description), width, ""))
	}
	var lines [][2]string
	for _, f := range op.Inputs {
		about := []string{f.Type}
		if f.Required {
			about = append(about, "required")
		}
		if f.Limits != "" {
			about = append(about, f.Limits)
		}
		lines = append(lines, [2]string{f.Name + "=", strings.Join(about, ", ") + ". " + term.Line(f.Description, 0)})
	}
	if len(lines) > 0 {
		fmt.Fprintln(p.Out)
		writePairs(p.Out, lines, width)
	}
}

// buildCall returns the request of an operation with the given values, and the file as its body.
func (p *program) buildCall(op openapi.Operation, args []string, file string) (client.Request, error) {
	call := client.Request{Method: op.Method, Path: op.Path, Query: url.Values{}, Header: map[string]string{}}
	body, given := map[string]any{}, map[string]bool{}
	var known []string
	for _, f := range op.Inputs {
		known = append(known, f.Name)
	}
	for _, arg := range args {
		name, value, isValue := strings.Cut(arg, "=")
		i := slices.Index(known, name)
		switch {
		case len(known) == 0:
			return call, core.Errorf(core.ErrInvalid, "%s has no parameters, not %s", op.ID, core.Literal(arg))
		case i < 0:
			return call, core.Errorf(core.ErrInvalid, "%s has no parameter %s; %s", op.ID, core.Literal(name), core.Suggest(name, known, "", "it has "+strings.Join(known, ", ")))
		case !isValue:
			return call, core.Errorf(core.ErrInvalid, "%s has no value: write %[1]s=…", name)
		}
		given[name] = true
		switch f := op.Inputs[i]; {
		case f.Place == "path":
			call.Path = strings.Replace(call.Path, "{"+name+"}", url.PathEscape(value), 1)
		case f.Place == "query":
			call.Query.Add(name, value)
		case f.Place == "header":
			call.Header[name] = value
		case !f.IsText && json.Valid([]byte(value)):
			body[name] = json.RawMessage(value)
		default:
			body[name] = value
		}
	}
	for _, f := range op.Inputs {
		if f.Required && !given[f.Name] && (f.Place != "body" || file == "") {
			return call, core.Errorf(core.ErrInvalid, "%s needs %s=…; %s api %[1]s --help describes it", op.ID, f.Name, programName())
		}
	}
	var err error
	switch {
	case file != "" && len(body) > 0:
		err = core.Errorf(core.ErrInvalid, "give either --body or members of the body, not both")
	case file != "" && op.Media == "":
		err = core.Errorf(core.ErrInvalid, "%s has no body", op.ID)
	case op.Media == "multipart/form-data":
		err = core.Errorf(core.ErrInvalid, "%s takes a form: send it with curl, as docs/API.md shows", op.ID)
	case file != "":
		var text string
		text, err = p.readText(file)
		call.Body, call.Header["Content-Type"] = strings.NewReader(text), op.Media
	case len(body) > 0:
		call.Body = body
	}
	return call, err
}

// completeOperations completes the ids of operations, and the names of their parameters.
func completeOperations(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var offers []string
	if len(args) > 0 {
		op, _ := findOperation(args[0]) // an unknown one has no parameters
		for _, f := range op.Inputs {
			offers = append(offers, f.Name+"=\t"+term.Line(f.Description, 60))
		}
	} else {
		for _, group := range openapi.New().Groups {
			for _, op := range group.Operations {
				offers = append(offers, op.ID+"\t"+op.Summary)
			}
		}
	}
	return slices.DeleteFunc(offers, func(offer string) bool { return !strings.HasPrefix(offer, begun) }), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
