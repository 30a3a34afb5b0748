package tools

import (
	"errors"
	"fmt"
)

// parser evaluates an expression while it parses, by recursive descent.
type parser struct {
	tokens []token
	next   int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.next] }

// take consumes the next token if it is one of the symbols, and returns it.
func (p *parser) take(symbols ...string) (string, bool) {
	t := p.peek()
	for _, s := range symbols {
		if t.kind == kindSymbol && t.text == s {
			p.next++
			return s, true
		}
	}
	return "", false
}

// parseNested runs a rule that can contain its caller, and bounds the depth.
func (p *parser) parseNested(rule func() (number, error)) (number, error) {
	if p.depth++; p.depth > MaxExpressionDepth {
		return number{}, fmt.Errorf("the expression is nested more than %d deep", MaxExpressionDepth)
	}
	defer func() { p.depth-- }()
	return rule()
}

// parseAll parses the whole expression.
func (p *parser) parseAll() (number, error) {
	if p.peek().kind == kindEnd {
		return number{}, errors.New("the expression is empty")
	}
	result, err := p.parseSum()
	if err != nil {
		return number{}, err
	}
	switch t := p.peek(); {
	case t.kind == kindEnd:
		return result, nil
	case t.text == ")":
		return number{}, fmt.Errorf("%s has no opening parenthesis", t.describe())
	case t.text == ",":
		return number{}, fmt.Errorf("%s is outside of a function; write 1000 for 1,000 and 0.5 for 0,5", t.describe())
	default:
		return number{}, fmt.Errorf("there is no operator before %s", t.describe())
	}
}

// parseSum parses products joined by + and -.
func (p *parser) parseSum() (number, error) {
	return p.parseChain(p.parseProduct, "+", "-")
}

// parseProduct parses signed powers joined by *, / and %.
func (p *parser) parseProduct() (number, error) {
	return p.parseChain(p.parseSigned, "*", "/", "%")
}

// parseChain parses operands joined by left-associative operators.
func (p *parser) parseChain(operand func() (number, error), operators ...string) (number, error) {
	left, err := operand()
	for err == nil {
		operator, ok := p.take(operators...)
		if !ok {
			return left, nil
		}
		if operator == "%" && !p.atOperand() {
			return number{}, fmt.Errorf("after %% comes a number, as it is the remainder of a division, not %s; write 15/100 for 15 percent", p.peek().describe())
		}
		var right number
		if right, err = operand(); err == nil {
			left, err = left.apply(operator, right)
		}
	}
	return number{}, err
}

// atOperand reports whether an operand may begin at the next token.
func (p *parser) atOperand() bool {
	t := p.peek()
	return t.kind == kindNumber || t.kind == kindName || t.kind == kindSymbol && (t.text == "(" || t.text == "-" || t.text == "+")
}

// parseSigned parses a power after any number of signs.
func (p *parser) parseSigned() (number, error) {
	negative := false
	for {
		sign, ok := p.take("+", "-")
		if !ok {
			break
		}
		negative = negative != (sign == "-")
	}
	n, err := p.parsePower()
	if err != nil || !negative {
		return n, err
	}
	return n.negate(), nil
}

// parsePower parses an operand with an optional exponent, which is a signed power.
func (p *parser) parsePower() (number, error) {
	base, err := p.parseOperand()
	if err != nil {
		return number{}, err
	}
	if _, ok := p.take("^"); !ok {
		return base, nil
	}
	exponent, err := p.parseNested(p.parseSigned)
	if err != nil {
		return number{}, err
	}
	return base.power(exponent)
}

// parseOperand parses a number, a constant, a call, or an expression in parentheses.
func (p *parser) parseOperand() (number, error) {
	t := p.peek()
	switch {
	case t.kind == kindNumber:
		p.next++
		return parseLiteral(t.text)
	case t.kind == kindName:
		p.next++
		return p.parseNamed(t)
	case t.text == "(":
		p.next++
		n, err := p.parseNested(p.parseSum)
		if err != nil {
			return number{}, err
		}
		return n, p.expectClosing(t)
	default:
		return number{}, fmt.Errorf("a number is missing before %s", t.describe())
	}
}

// expectClosing consumes the parenthesis that closes open.
func (p *parser) expectClosing(open token) error {
	if _, ok := p.take(")"); ok {
		return nil
	}
	return fmt.Errorf("the parenthesis at character %d is not closed before %s", open.at, p.peek().describe())
}

// parseNamed parses a constant, or a function and its arguments.
func (p *parser) parseNamed(name token) (number, error) {
	if value, ok := constantValue(name.text); ok {
		return value, nil
	}
	f, ok := functionTable()[name.text]
	if !ok {
		return number{}, fmt.Errorf("%s is unknown; the functions are %s; the constants are pi and e", name.describe(), functionNames())
	}
	open := p.peek()
	if _, ok := p.take("("); !ok {
		return number{}, fmt.Errorf("the arguments of %s are missing; write them in parentheses, as in %s", name.text, f.example)
	}
	args, err := p.parseArguments(open)
	if err != nil {
		return number{}, err
	}
	if len(args) < f.minArgs || len(args) > f.maxArgs {
		return number{}, fmt.Errorf("%s does not take %d arguments; write it as in %s", name.text, len(args), f.example)
	}
	return f.call(args)
}

// parseArguments parses expressions joined by commas, up to the closing parenthesis.
func (p *parser) parseArguments(open token) ([]number, error) {
	if _, ok := p.take(")"); ok {
		return nil, nil
	}
	var args []number
	for {
		arg, err := p.parseNested(p.parseSum)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
		if _, ok := p.take(","); !ok {
			return args, p.expectClosing(open)
		}
	}
}
