package arch

// part is a row of the table "may import" of the conventions.
type part struct {
	dir string
	may []string // the other parts that it may import
}

// parts is the star: every part knows core, app joins them. The row of app
// holds for app.go alone; a folder below app is a part of its own.
func parts() []part {
	return []part{
		{dir: ".", may: []string{"app/cli"}},
		{dir: "app", may: []string{anything}},
		{dir: "app/admin", may: []string{"app/core"}},
		{dir: "app/agents", may: []string{"app/core", "app/tools"}},
		{dir: "app/api", may: []string{"app/core"}},
		{dir: "app/blobs", may: []string{"app/core"}},
		{dir: "app/chat", may: []string{"app/core"}},
		{dir: "app/cli", may: []string{"app", "app/admin", "app/client", "app/core", "app/folder", "app/purge"}},
		{dir: "app/client", may: []string{"app/core"}},
		{dir: "app/core"},
		{dir: "app/db", may: []string{"app/core", "migrations"}},
		{dir: "app/deliveries", may: []string{"app/core"}},
		{dir: "app/eval", may: []string{"app/core"}},
		{dir: "app/events", may: []string{"app/core"}},
		{dir: "app/folder", may: []string{"app/core"}},
		{dir: "app/memories", may: []string{"app/core"}},
		{dir: "app/purge", may: []string{"app/core"}},
		{dir: "app/retention", may: []string{"app/core"}},
		{dir: "app/runs", may: []string{"app/core"}},
		{dir: "app/slack", may: []string{"app/core"}},
		{dir: "app/spend", may: []string{"app/core"}},
		{dir: "app/telemetry", may: []string{"app/core"}},
		{dir: "app/titles", may: []string{"app/core"}},
		{dir: "app/tools", may: []string{"app/core"}},
		{dir: "app/transfer", may: []string{"app/core"}},
		{dir: "app/web", may: []string{"app/core"}},
		{dir: "app/webhooks", may: []string{"app/core"}},
		{dir: "migrations"},
		{dir: "tests", may: []string{anything}},
	}
}

// anything stands for every part.
const anything = "*"

// inner is an arrow inside a part.
type inner struct {
	dir string   // a package or a pattern of path.Match; the first row that fits holds
	may []string // what it may import of its own part
}

// inners are the arrows inside the parts. A package without a row is free there.
func inners() []inner {
	return []inner{
		{dir: "app/agents/catalog", may: []string{"app/agents/graph", "app/agents/nodes", "app/agents/prompts", "app/agents/state"}},
		{dir: "app/agents/graph"},
		{dir: "app/agents/nodes", may: []string{"app/agents/graph", "app/agents/prompts", "app/agents/state"}},
		{dir: "app/agents/prompts"},
		{dir: "app/agents/state"},

		{dir: "app/api/apitest", may: []string{"app/api/handlers", "app/api/sse"}},
		{dir: "app/api/auth", may: []string{"app/api/rate"}},
		{dir: "app/api/auth/jwt"},
		{dir: "app/api/rate"},
		{dir: "app/api/handlers", may: []string{"app/api/sse"}},
		{dir: "app/api/openapi"},
		{dir: "app/api/sse"},
		{dir: "app/api/*", may: []string{"app/api/sse"}}, // the other dialects

		{dir: "app/core"},
		{dir: "app/core/compaction", may: []string{"app/core", "app/core/attach", "app/core/contextwindow", "app/core/llm", "app/core/redact", "app/core/summarize", "app/core/tokens"}},
		{dir: "app/core/contextwindow", may: []string{"app/core", "app/core/attach", "app/core/cut", "app/core/llm", "app/core/tokens"}},
		{dir: "app/core/llm/exchange", may: []string{"app/core", "app/core/llm"}},
		{dir: "app/core/llm/*", may: []string{"app/core", "app/core/embed", "app/core/llm", "app/core/llm/exchange", "app/core/tokens"}},
		{dir: "app/core/logging", may: []string{"app/core", "app/core/config"}},
		{dir: "app/core/summarize", may: []string{"app/core", "app/core/cut", "app/core/llm", "app/core/redact", "app/core/tokens"}},
		{dir: "app/core/tokens", may: []string{"app/core", "app/core/llm"}},
		{dir: "app/core/*", may: []string{"app/core"}},

		{dir: "app/db/models"},
		{dir: "app/db/repositories", may: []string{"app/db", "app/db/models"}},
	}
}

// library is a row of the column "alone may import": a foreign module that one
// package or part hides from all others.
type library struct {
	prefix string
	owner  string
}

func libraries() []library {
	return []library{
		{prefix: "github.com/anthropics/anthropic-sdk-go", owner: "app/core/llm/anthropic"},
		{prefix: "github.com/aymanbagabas/go-udiff", owner: "app/core/compaction"},
		{prefix: "github.com/gin-contrib", owner: "app/api"},
		{prefix: "github.com/gin-gonic/gin", owner: "app/api"},
		{prefix: "github.com/go-jose/go-jose", owner: "app/api/auth/jwt"},
		{prefix: "github.com/google/uuid", owner: "app/core"},
		{prefix: "github.com/jackc/pgx", owner: "app/db"},
		{prefix: "github.com/modelcontextprotocol/go-sdk", owner: "app/tools"},
		{prefix: "github.com/nats-io", owner: "app/events"},
		{prefix: "github.com/pkoukk/tiktoken-go", owner: "app/core/tokens"},
		{prefix: "github.com/pkoukk/tiktoken-go-loader", owner: "app/core/tokens"},
		{prefix: "github.com/pressly/goose", owner: "app/db"},
		{prefix: "github.com/prometheus", owner: "app/telemetry"},
		{prefix: "github.com/slack-go/slack", owner: "app/slack"},
		{prefix: "github.com/spf13/cobra", owner: "app/cli"},
		{prefix: "github.com/spf13/viper", owner: "app/core/config"},
		{prefix: "github.com/tmc/langchaingo", owner: "app/core/llm/langchain"},
		{prefix: "go.opentelemetry.io", owner: "app/telemetry"},
		{prefix: "gorm.io", owner: "app/db"},
		{prefix: "modernc.org/sqlite", owner: "app/db"},
	}
}

// coreMayUse are the libraries of core besides those that it alone may import;
// everything else there is the standard library and golang.org/x.
func coreMayUse() []library {
	return []library{
		{prefix: "github.com/go-viper/mapstructure", owner: "app/core/config"}, // viper's own decoder
		{prefix: "go.yaml.in/yaml", owner: "app/core/config"},
	}
}

// Limits of a file, in lines.
const (
	maxLines     = 400
	maxTestLines = 500
)

// emptyNames are package names that say nothing of what is in the package.
func emptyNames() []string {
	return []string{"common", "helper", "helpers", "manager", "misc", "shared", "types", "util", "utils"}
}
