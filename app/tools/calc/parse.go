package calc

import (
	"errors"
	"fmt"
)

// parser evaluates while it reads, by recursive descent.
type parser struct {
	tokens []token
	next   int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.next] }

// take steps over the next token if it is one of the symbols, and returns which.
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

// nested runs a rule that contains the rule which calls it.
func (p *parser) nested(rule func() (number, error)) (number, error) {
	if p.depth++; p.depth > MaxDepth {
		return number{}, fmt.Errorf("the expression is nested more than %d deep", MaxDepth)
	}
	defer func() { p.depth-- }()
	return rule()
}

// all is the whole expression.
func (p *parser) all() (number, error) {
	if p.peek().kind == kindEnd {
		return number{}, errors.New("the expression is empty")
	}
	result, err := p.sum()
	if err != nil {
		return number{}, err
	}
	switch t := p.peek(); {
	case t.kind == kindEnd:
		return result, nil
	case t.text == ")":
		return number{}, fmt.Errorf("%s closes nothing", t.shown())
	case t.text == ",":
		return number{}, fmt.Errorf("%s is outside of a function; write 1000 for 1,000 and 0.5 for 0,5", t.shown())
	default:
		return number{}, fmt.Errorf("there is no operator before %s", t.shown())
	}
}

// sum is products joined by + and -.
func (p *parser) sum() (number, error) {
	return p.chain(p.product, "+", "-")
}

// product is signed powers joined by *, / and %.
func (p *parser) product() (number, error) {
	return p.chain(p.signed, "*", "/", "%")
}

// chain is operands joined by operators that bind to the left.
func (p *parser) chain(operand func() (number, error), operators ...string) (number, error) {
	left, err := operand()
	for err == nil {
		operator, ok := p.take(operators...)
		if !ok {
			return left, nil
		}
		if operator == "%" && !p.atOperand() {
			return number{}, fmt.Errorf("after %% comes a number, as it is the remainder of a division, not %s; write 15/100 for 15 percent", p.peek().shown())
		}
		var right number
		if right, err = operand(); err == nil {
			left, err = left.apply(operator, right)
		}
	}
	return number{}, err
}

// atOperand reports whether a number may begin here.
func (p *parser) atOperand() bool {
	t := p.peek()
	return t.kind == kindNumber || t.kind == kindName || t.kind == kindSymbol && (t.text == "(" || t.text == "-" || t.text == "+")
}

// signed is a power with any number of signs before it.
func (p *parser) signed() (number, error) {
	negative := false
	for {
		sign, ok := p.take("+", "-")
		if !ok {
			break
		}
		negative = negative != (sign == "-")
	}
	n, err := p.power()
	if err != nil || !negative {
		return n, err
	}
	return n.negated(), nil
}

// power is an operand with an exponent, which may be a signed power itself.
func (p *parser) power() (number, error) {
	base, err := p.operand()
	if err != nil {
		return number{}, err
	}
	if _, ok := p.take("^"); !ok {
		return base, nil
	}
	exponent, err := p.nested(p.signed)
	if err != nil {
		return number{}, err
	}
	return base.power(exponent)
}

// operand is a number, a constant, a call, or an expression in parentheses.
func (p *parser) operand() (number, error) {
	t := p.peek()
	switch {
	case t.kind == kindNumber:
		p.next++
		return literal(t.text)
	case t.kind == kindName:
		p.next++
		return p.named(t)
	case t.text == "(":
		p.next++
		n, err := p.nested(p.sum)
		if err != nil {
			return number{}, err
		}
		return n, p.closing(t)
	default:
		return number{}, fmt.Errorf("a number is missing before %s", t.shown())
	}
}

// closing steps over the parenthesis that closes the one at open.
func (p *parser) closing(open token) error {
	if _, ok := p.take(")"); ok {
		return nil
	}
	return fmt.Errorf("the parenthesis at character %d is not closed before %s", open.at, p.peek().shown())
}

// named is a constant, or a function and its arguments.
func (p *parser) named(name token) (number, error) {
	if value, ok := constant(name.text); ok {
		return value, nil
	}
	f, ok := functions()[name.text]
	if !ok {
		return number{}, fmt.Errorf("%s is not known; there are the functions %s and the constants pi and e", name.shown(), functionNames())
	}
	open := p.peek()
	if _, ok := p.take("("); !ok {
		return number{}, fmt.Errorf("the arguments of %s are missing; write them in parentheses, as in %s", name.text, f.example)
	}
	args, err := p.arguments(open)
	if err != nil {
		return number{}, err
	}
	if len(args) < f.least || len(args) > f.most {
		return number{}, fmt.Errorf("%s does not take %d arguments; write it as in %s", name.text, len(args), f.example)
	}
	return f.call(args)
}

// arguments are expressions joined by commas, up to the closing parenthesis.
func (p *parser) arguments(open token) ([]number, error) {
	if _, ok := p.take(")"); ok {
		return nil, nil
	}
	var args []number
	for {
		arg, err := p.nested(p.sum)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
		if _, ok := p.take(","); !ok {
			return args, p.closing(open)
		}
	}
}
