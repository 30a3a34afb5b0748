package agents

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"bobbin/app/agents/graph"
	"bobbin/app/agents/nodes"
	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/tools"
)

// contextKeeper makes prompts fit (compaction.Keeper).
type contextKeeper interface {
	Fit(ctx context.Context, t compaction.Turn) (compaction.Turn, contextwindow.Decision, error)
	Request(ctx context.Context, t compaction.Turn, d contextwindow.Decision) (llm.Request, contextwindow.Sent, error)
	Describe(t compaction.Turn, d contextwindow.Decision, sent contextwindow.Sent) core.ContextReport
}

// sessionStore reads sessions.
type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
}

// messageStore reads the message log.
type messageStore interface {
	GetMessagesAfter(ctx context.Context, scope core.Scope, id core.SessionID, after core.MessageID) ([]core.Message, error)
}

// executionStore remembers which tools were started that must not run twice.
type executionStore interface {
	StartTools(ctx context.Context, run core.RunID, attempt int, starts []core.ToolExecution) error
	ToolExecutions(ctx context.Context, run core.RunID) ([]core.ToolExecution, error)
}

// approvalStore knows what people have said of tool calls.
type approvalStore interface {
	Approvals(ctx context.Context, run core.RunID) ([]core.Approval, error)
	Allowed(ctx context.Context, session core.SessionID, tools []string) (map[string]bool, error)
}

// journal stores what the nodes produce and tells the watchers.
type journal interface {
	Append(ctx context.Context, w core.RunWrite) (core.Written, error)
	Delta(ctx context.Context, e core.Event)
}

// counter counts the tokens of messages for the log.
type counter interface {
	Message(m core.Message) int
}

// calibrator learns how models count.
type calibrator interface {
	Observe(model string, session core.SessionID, estimated, provider int)
	Tighten(model string, session core.SessionID, ratio float64)
	Told(model string, window int)
	Fitted(model string, total int)
}

// budget knows what may still be spent.
type budget interface {
	Check(ctx context.Context, owner string) error
}

// observer is told what runs do (telemetry). It must not wait for anything.
type observer interface {
	// Node is told of a node that begins, which goes on with the context returned;
	// ended is called once.
	Node(ctx context.Context, name string) (_ context.Context, ended func(error))
	// Tool is told of a tool call that begins, which goes on with the context returned;
	// ended is called once, with what became of it. The name is the model's.
	Tool(ctx context.Context, name, callID string) (_ context.Context, ended func(outcome string))
}

// Options are what an Engine is made of. All but Budget and Observer are required.
type Options struct {
	Profiles   *Profiles
	Keeper     contextKeeper
	Sessions   sessionStore
	Messages   messageStore
	Executions executionStore
	Approvals  approvalStore
	Journal    journal
	Tools      *tools.Set
	Counter    counter
	Calibrator calibrator
	ToolLimits nodes.ToolLimits
	// ApprovalTime is how long a run waits for a person; 0 = until there is an answer.
	ApprovalTime time.Duration
	Budget       budget   // nil = no limits
	Observer     observer // nil = nobody is told
	Logger       *slog.Logger
}

// Engine executes runs. Safe for concurrent use.
type Engine struct {
	graph        *graph.Compiled[state.AgentState]
	journal      journal
	approvalTime time.Duration
}

// NewEngine builds the graph. An error is a programmer's.
func NewEngine(o Options) (*Engine, error) {
	compiled, err := build(observed(o.Observer, map[string]graph.NodeFunc[state.AgentState]{
		nodes.ProcessMessage:  nodes.NewMessageProcessor(o.Sessions, o.Profiles).Run,
		nodes.RetrieveContext: nodes.NewContextRetriever(o.Messages, o.Keeper).Run,
		nodes.SaveUserMessage: nodes.NewUserMessageSaver(o.Journal).Run,
		nodes.LLMNode:         nodes.NewCaller(o.Keeper, o.Journal, o.Counter, o.Calibrator, o.Logger).Within(o.Budget).Run,
		nodes.ToolNode: nodes.NewToolRunner(nodes.ToolOptions{
			Tools: o.Tools, Journal: o.Journal, Executions: o.Executions, Approvals: o.Approvals, Counter: o.Counter, Limits: o.ToolLimits, Logger: o.Logger,
			Observer: o.Observer,
		}).Run,
	}))
	if err != nil {
		return nil, fmt.Errorf("agent graph: %w", err)
	}
	return &Engine{graph: compiled, journal: o.Journal, approvalTime: o.ApprovalTime}, nil
}

// observed returns the nodes with the observer told of each.
func observed(o observer, node map[string]graph.NodeFunc[state.AgentState]) map[string]graph.NodeFunc[state.AgentState] {
	if o == nil {
		return node
	}
	for name, run := range node {
		node[name] = func(ctx context.Context, s state.AgentState) (state.AgentState, error) {
			ctx, ended := o.Node(ctx, name)
			out, err := run(ctx, s)
			if _, waits := asked(err); waits {
				ended(nil)
				return out, err
			}
			ended(err)
			return out, err
		}
	}
	return node
}

// build puts the nodes together (W1). This is the whole shape of an agent.
func build(node map[string]graph.NodeFunc[state.AgentState]) (*graph.Compiled[state.AgentState], error) {
	g := graph.New[state.AgentState]("agent")
	for _, name := range []string{nodes.ProcessMessage, nodes.RetrieveContext, nodes.SaveUserMessage, nodes.LLMNode, nodes.ToolNode} {
		g.Node(name, node[name])
	}
	g.Edge(graph.START, nodes.ProcessMessage)
	g.Edge(nodes.ProcessMessage, nodes.RetrieveContext)
	g.Edge(nodes.RetrieveContext, nodes.SaveUserMessage)
	g.Edge(nodes.SaveUserMessage, nodes.LLMNode)
	g.ConditionalEdge(nodes.LLMNode, afterModel, nodes.ToolNode, graph.END)
	g.Edge(nodes.ToolNode, nodes.LLMNode)
	return g.Compile()
}

// afterModel goes on with the tools while the model asks for some.
func afterModel(_ context.Context, s state.AgentState) string {
	if len(s.OpenCalls()) > 0 {
		return nodes.ToolNode
	}
	return graph.END
}
