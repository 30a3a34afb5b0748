package tools_test

import (
	"testing"

	"bobbin/app/agents/tools"
)

func TestCalculator(t *testing.T) {
	t.Parallel()
	const expected = `; expected a JSON object such as {"expression": "2+2"}`
	tests := []struct {
		name      string
		arguments string
		want      string
		wantErr   string
	}{
		{"sum", `{"expression": "2+2"}`, "4", ""},
		{"exact decimals", `{"expression": "0.1+0.2"}`, "0.3", ""},
		{"rounded", `{"expression": "1/3"}`, "≈ 0.333333333333333", ""},
		{"a fault in the expression", `{"expression": "1/0"}`, "", "division by zero"},
		{"a tower of powers", `{"expression": "9^9^9^9"}`, "", "the power is too large: it has about 369693100 digits; up to 6000 are possible"},
		{"nothing", ``, "", "the expression is missing" + expected},
		{"empty object", `{}`, "", "the expression is missing" + expected},
		{"blank", `{"expression": " "}`, "", "the expression is missing" + expected},
		{"not an object", `42`, "", "the arguments are not an object" + expected},
		{"not JSON", `2+2`, "", "the arguments are not an object" + expected},
		{"wrong type", `{"expression": 4}`, "", `"expression" must be a string, not a number` + expected},
		{"unknown argument", `{"expr": "2+2"}`, "", `there is no argument "expr"` + expected},
	}
	tool := tools.NewCalculator()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.Call(t.Context(), tools.Call{Arguments: tt.arguments})
			checkAnswer(t, got, err, tt.want, tt.wantErr)
		})
	}
}
