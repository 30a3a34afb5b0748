package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app/api/ops"
	"bobbin/app/cli/chat"
	draw "bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/redact"
)

// sessionChoice selects the session of a command, and who answers.
type sessionChoice struct {
	agent   string
	session string // its id, or the beginning of its id
	last    bool   // the most recently used session
	model   string // which model answers; empty = the session's
}

func (c *sessionChoice) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.session, "session", "", "continue this session; the beginning of its `id` is enough")
	cmd.Flags().BoolVar(&c.last, "last", false, "continue the most recent session")
	cmd.Flags().StringVar(&c.model, "model", "", "use this `model` instead of the session's")
	cmd.MarkFlagsMutuallyExclusive("session", "last")
}

// withoutDash removes a final -, which stands for the standard input, from the arguments.
func withoutDash(args []string) []string {
	if n := len(args); n > 0 && args[n-1] == "-" {
		return args[:n-1]
	}
	return args
}

func (p *program) chatCommand() *cobra.Command {
	c := sessionChoice{}
	cmd := &cobra.Command{
		Use:   "chat [agent]",
		Short: "Talk to an agent in the terminal",
		Long: "Starts a conversation with an agent. It uses the server of --url, or the server that runs on the data\n" +
			"folder; without one it works on the folder itself and says so. Conversations are stored; --last\n" +
			"continues the most recent one.\n\n" +
			"Piped input is one message. With - as the last argument each line is a message.",
		Example: "  bobbin chat\n  bobbin chat researcher\n  bobbin chat --last\n  bobbin chat --session 01a1fd1b-c2ab\n  bobbin chat quick - < questions.txt",
		Args: func(cmd *cobra.Command, args []string) error {
			if args = withoutDash(args); len(args) > 1 {
				return core.Errorf(core.ErrInvalid, "too many arguments, starting with %q; usage: %s", args[1], cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: p.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := withoutDash(args)
			lines := len(name) < len(args)
			c.agent = strings.Join(name, "")
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				session, err := openSession(ctx, s.client, c)
				if err != nil {
					return err
				}
				attended := p.isAttended()
				if attended {
					defer p.hideTyping(context.WithoutCancel(ctx))()
				}
				input, err := p.openInput(attended, lines)
				if err != nil {
					return err
				}
				defer input.Close()
				interrupts, notes := make(chan os.Signal, 1), p.Err
				if attended {
					signal.Notify(interrupts, os.Interrupt)
					defer signal.Stop(interrupts)
					p.printGreeting(s, session)
					notes = p.Out
				}
				if session.ID != "" {
					fmt.Fprintf(notes, "%d messages in history (%d summarized)\n", session.MessageCount, session.SummarizedCount)
				}
				talked := chat.New(chat.Options{
					Service: s.client, Session: session, Model: c.model, Lines: input, Out: p.Out, Notes: notes,
					Interrupts: interrupts, Size: p.terminalSize, Attended: attended,
				})
				err = talked.Run(ctx)
				if attended && talked.Session.ID != "" {
					fmt.Fprintf(p.Out, "to continue: %s\n", p.suggestCommand("chat", "--session", string(talked.Session.ID)))
				}
				return err
			})
		},
	}
	c.addFlags(cmd)
	return cmd
}

// hideTyping turns off the terminal's echo, which would mix what is typed ahead into an answer: the
// editor itself shows what is typed at its prompt. Without line mode a Ctrl-D that is typed ahead
// reaches the editor as it is. The returned function restores the terminal.
func (p *program) hideTyping(ctx context.Context) (restore func()) {
	stty := func(settings ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "stty", settings...)
		cmd.Stdin = p.In
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	saved, err := stty("-g")
	if err != nil {
		return func() {} // a system without stty
	}
	_, _ = stty("-echo", "-icanon", "min", "1", "time", "0")
	return func() { _, _ = stty(saved) }
}

// printGreeting prints which server and agent the conversation is with.
func (p *program) printGreeting(s connection, session core.Session) {
	width, _ := p.terminalSize()
	who := s.description
	if session.Agent != "" {
		who += " · agent " + session.Agent
	}
	if s.settingsFile != "" {
		who += " · settings from " + s.settingsFile
	}
	fmt.Fprintln(p.Out, draw.Wrap(who, width, "  "))
	if s.ownFolder != "" {
		fmt.Fprintln(p.Out, draw.Wrap(noServerOn(s.ownFolder)+": this chat works on it directly", width, "  "))
	}
	fmt.Fprintln(p.Out, draw.Wrap("/help lists the commands, Ctrl-D quits", width, "  "))
}

// openSession finds the session to continue. A new one is only described: it is created
// with its first message, so that a chat without messages leaves nothing behind.
func openSession(ctx context.Context, c *client.Client, which sessionChoice) (core.Session, error) {
	id, err := findSession(ctx, c, which.session)
	if which.last {
		var page core.Page[core.Session]
		page, err = client.Call(ctx, c, ops.ListSessions, core.SessionQuery{PageQuery: core.PageQuery{Limit: 1}, Agent: which.agent})
		if err == nil && len(page.Items) == 0 {
			err = core.Errorf(core.ErrNotFound, "there is no session to continue yet")
		}
		for _, newest := range page.Items {
			id = newest.ID
		}
	}
	if err != nil {
		return core.Session{}, err
	}
	if id == "" {
		if which.agent != "" {
			if _, err := client.Call(ctx, c, ops.GetAgent, ops.InAgent{Name: which.agent}); err != nil {
				return core.Session{}, err
			}
		}
		return core.Session{Agent: which.agent, Model: which.model, Source: core.SourceCLI}, nil
	}
	session, err := client.Call(ctx, c, ops.GetSession, ops.InSession{SessionID: id})
	if err == nil && which.agent != "" && which.agent != session.Agent {
		return core.Session{}, core.Errorf(core.ErrInvalid, "session %s belongs to agent %s, not to %s", id, session.Agent, which.agent)
	}
	return session.Session, err
}

// isAttended reports whether a person reads the output and types the input.
func (p *program) isAttended() bool {
	width, _ := p.terminalSize()
	return width > 0 && term.IsTerminal(int(p.In.Fd()))
}

// terminalSize returns the size of the terminal; zeros if the output is not a terminal.
func (p *program) terminalSize() (width, height int) {
	out, ok := draw.Raw(p.Out).(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 || height <= 0 { // docker exec -t, ssh -tt: the terminal does not report its size
		return 80, 24
	}
	return width, height
}

// openInput returns the reader of the user's messages: with editing and history on a
// terminal; otherwise each line is a message, or the whole input is one.
func (p *program) openInput(terminal, each bool) (draw.Reader, error) {
	switch {
	case terminal:
		return draw.NewEdited(p.In, draw.Raw(p.Out), "> ")
	case each:
		return draw.NewPlain(p.In), nil
	}
	text, err := p.readText("-")
	return draw.NewWhole(text), err
}

func (p *program) askCommand() *cobra.Command {
	c, keep := sessionChoice{}, false
	cmd := &cobra.Command{
		Use:   "ask <question>",
		Short: "Ask one question and print the answer",
		Long: "Sends one message with one call of the model, and prints only the answer to the standard output. What\n" +
			"is piped into the standard input is appended to the arguments. The conversation is in no list and is\n" +
			"removed after a day; --keep keeps it, and --session or --last continue one that is kept.\n" +
			"The exit code is 1 if there is no answer.",
		Example: "  bobbin ask what is 17 % of 4,300\n  bobbin ask 'Summarize this:' < report.txt\n  git diff | bobbin ask --agent reviewer\n  bobbin ask --keep who wrote Emma\n  bobbin ask --last and when",
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := withoutDash(args)
			text := strings.Join(asked, " ")
			typed := term.IsTerminal(int(p.In.Fd()))
			if typed && len(args) == 0 {
				return core.Errorf(core.ErrInvalid, "no question given: %s ask <question>", programName())
			}
			if !typed || len(asked) < len(args) {
				more, err := p.readText("-")
				if err != nil {
					return err
				}
				text = strings.TrimSpace(text + "\n\n" + more)
			}
			if strings.TrimSpace(text) == "" {
				return core.Errorf(core.ErrInvalid, "the question is empty")
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error { return p.runAsk(ctx, s, c, keep, text) })
		},
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&c.agent, "agent", "", "the agent that answers")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the conversation, so that --last continues it")
	return p.withJSON(cmd)
}

func (p *program) runAsk(ctx context.Context, s connection, c sessionChoice, keep bool, text string) error {
	session, err := openSession(ctx, s.client, c)
	if err != nil {
		return err
	}
	if session.ID == "" {
		in := ops.NewSession{Agent: session.Agent, Model: session.Model, Source: session.Source, Temporary: !keep}
		if keep { // a title by a model would be another call
			in.Title = core.TitleOf(redact.Text(text))
		}
		if session, err = client.Call(ctx, s.client, ops.CreateSession, in); err != nil {
			return err
		}
	}
	if !p.json {
		talked := chat.New(chat.Options{
			Service: s.client, Session: session, Model: c.model, Lines: draw.NewPlain(strings.NewReader("")), Out: p.Out, Notes: p.Err, Size: p.terminalSize,
		})
		return talked.Ask(ctx, text)
	}
	answer, err := client.Call(ctx, s.client, ops.SendMessage, ops.NewMessage{InSession: ops.InSession{SessionID: session.ID}, Content: text, Model: c.model, Source: core.SourceCLI})
	if err != nil {
		return err
	}
	if err := p.printJSON(answer); err != nil {
		return err
	}
	if answer.Run.Status != core.RunSucceeded {
		return &silentError{fmt.Sprintf("the run has status %s", answer.Run.Status)}
	}
	return nil
}
