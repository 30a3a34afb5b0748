package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"bobbin/app/core/llm"
)

// Calculator evaluates arithmetic expressions; see EvaluateExpression for the syntax.
type Calculator struct{}

// NewCalculator returns the tool calculator.
func NewCalculator() *Calculator { return &Calculator{} }

// Spec returns the definition for the model.
func (*Calculator) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "calculator",
		Description: "Evaluates an arithmetic expression exactly. Supports + - * / ^ parentheses, % (the remainder of a division), " +
			"sqrt abs round(x, decimals) floor ceil min max sin cos tan (radians) ln log (decimal) exp, pi and e. " +
			"A result that begins with ≈ is rounded.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string",` +
			`"description":"for example (2+3)*4^2 or round(199.99*0.19, 2); no thousands separators, no units"}},` +
			`"required":["expression"],"additionalProperties":false}`),
	}
}

// Idempotent returns true.
func (*Calculator) Idempotent() bool { return true }

// Call returns the value, such as "80" or "≈ 0.333333333333333".
func (*Calculator) Call(_ context.Context, call Call) (string, error) {
	const example = `{"expression": "2+2"}`
	args, err := parseArguments[struct {
		Expression string `json:"expression"`
	}](call.Arguments, example)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(args.Expression) == "" {
		return "", errors.New("the expression is missing; expected a JSON object such as " + example)
	}
	return EvaluateExpression(args.Expression)
}
