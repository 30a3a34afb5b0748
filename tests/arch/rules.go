package arch

// part is a row of the table "may import" of the conventions.
type part struct {
	dir string
	may []string // the other parts that it may import
}

// parts are the layers, from the bottom up: core, then what knows core alone, then agents,
// runs and chat, then the ways in, then wire, which builds the parts, and what is made of what
// wire builds. A part imports the parts below it, concretely. The row of app holds for its own
// files alone; a folder below app is a part of its own.
func parts() []part {
	return []part{
		{dir: "migrations"},
		{dir: "app/web"},
		{dir: "licenses"},
		{dir: "docs"},
		{dir: "app/core", may: []string{"docs"}},
		{dir: "app/blobs", may: []string{"app/core"}},
		{dir: "app/db", may: []string{"app/core", "migrations"}},
		{dir: "app/api/ops", may: []string{"app/core"}},
		{dir: "app/client", may: []string{"app/api/ops", "app/core"}},
		{dir: "app/deliveries", may: []string{"app/core"}},
		{dir: "app/events", may: []string{"app/core"}},
		{dir: "app/extract", may: []string{"app/core"}},
		{dir: "app/purge", may: []string{"app/core", "app/db"}},
		{dir: "app/telemetry", may: []string{"app/core"}},
		{dir: "app/agents", may: []string{"app/core"}},
		{dir: "app/runs", may: []string{"app/agents", "app/core", "app/events"}},
		{dir: "app/chat", may: []string{"app/agents", "app/blobs", "app/core", "app/db", "app/events", "app/runs"}},
		{dir: "app/slack", may: []string{"app/agents", "app/blobs", "app/chat", "app/core", "app/db", "app/events", "app/runs"}},
		{dir: "app/api", may: []string{"app/agents", "app/api/ops", "app/blobs", "app/chat", "app/core", "app/events", "app/purge", "app/runs", "app/web"}},
		{dir: "app/wire", may: []string{anything}},
		{dir: "app/eval", may: []string{"app/agents", "app/chat", "app/core", "app/runs", "app/telemetry", "app/wire"}},
		{dir: "app/ops", may: []string{"app/agents", "app/core", "app/db", "app/slack", "app/wire"}},
		{dir: "app", may: []string{anything}},
		{dir: "app/cli", may: []string{"app", "app/api", "app/api/ops", "app/client", "app/core", "app/eval", "app/extract", "app/ops", "app/slack", "licenses"}},
		{dir: ".", may: []string{"app/cli"}},
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
		{dir: "app/agents/graph"},
		{dir: "app/agents/nodes", may: []string{"app/agents/graph", "app/agents/tools"}},
		{dir: "app/agents/tools/*", may: []string{"app/agents/tools"}},
		{dir: "app/agents/tools"},

		{dir: "app/api/auth"},
		{dir: "app/api/handlers"},
		{dir: "app/api/openapi"},
		{dir: "app/api/*", may: []string{"app/api/handlers"}}, // the other dialects, which stream as it does

		{dir: "app/core"},
		{dir: "app/core/compaction", may: []string{"app/core", "app/core/attach", "app/core/contextwindow", "app/core/llm", "app/core/redact", "app/core/standing", "app/core/summarize", "app/core/tokens"}},
		{dir: "app/core/contextwindow", may: []string{"app/core", "app/core/attach", "app/core/llm", "app/core/prompttext", "app/core/tokens"}},
		{dir: "app/core/llm/demo", may: []string{"app/core", "app/core/llm", "app/core/prompttext", "app/core/tokens"}},
		{dir: "app/core/llm/providerhttp", may: []string{"app/core", "app/core/llm", "app/core/redact"}},
		{dir: "app/core/llm/responses", may: []string{"app/core", "app/core/llm", "app/core/llm/openai", "app/core/llm/providerhttp"}}, // openai knows the models
		{dir: "app/core/llm/*", may: []string{"app/core", "app/core/llm", "app/core/llm/providerhttp", "app/core/tokens"}},
		{dir: "app/core/relevance", may: []string{"app/core/searchtext"}},
		{dir: "app/core/standing", may: []string{"app/core", "app/core/prompttext"}},
		{dir: "app/core/summarize", may: []string{"app/core", "app/core/llm", "app/core/prompttext", "app/core/redact", "app/core/standing", "app/core/tokens"}},
		{dir: "app/core/tokens", may: []string{"app/core", "app/core/llm"}},
		{dir: "app/core/*", may: []string{"app/core"}},

		{dir: "app/db/models"},
		{dir: "app/db/commit", may: []string{"app/db/models"}},
		{dir: "app/db/repositories", may: []string{"app/db", "app/db/commit", "app/db/models"}},
	}
}

// library is a row of the column "alone may import": a foreign module that one
// package or part hides from all others.
type library struct {
	prefix string
	owner  string
	also   string // a second owner, of another side of the same protocol; empty = none
}

func libraries() []library {
	return []library{
		{prefix: "github.com/JohannesKaufmann/html-to-markdown", owner: "app/extract"},
		{prefix: "github.com/KimMachineGun/automemlimit", owner: "app"},
		{prefix: "github.com/abadojack/whatlanggo", owner: "app/core/summarize"},
		{prefix: "github.com/aws", owner: "app/core/llm/anthropic"},
		{prefix: "github.com/aymanbagabas/go-udiff", owner: "app/core/compaction"},
		{prefix: "github.com/blevesearch/snowballstem", owner: "app/core/searchtext"},
		{prefix: "github.com/getkin/kin-openapi", owner: "app/agents/tools"},
		{prefix: "github.com/go-openapi/jsonpointer", owner: "app/agents/tools"},
		{prefix: "github.com/gin-contrib", owner: "app/api"},
		{prefix: "github.com/gin-gonic/gin", owner: "app/api"},
		{prefix: "github.com/go-jose/go-jose", owner: "app/api/auth"},
		{prefix: "github.com/google/jsonschema-go", owner: "app/api/mcp"},
		{prefix: "github.com/google/uuid", owner: "app/core"},
		{prefix: "github.com/jackc/pgx", owner: "app/db"},
		{prefix: "github.com/ledongthuc/pdf", owner: "app/extract"},
		{prefix: "github.com/modelcontextprotocol/go-sdk", owner: "app/agents/tools", also: "app/api/mcp"}, // the client and the server
		{prefix: "github.com/nats-io", owner: "app/events"},
		{prefix: "github.com/pkoukk/tiktoken-go", owner: "app/core/tokens"},
		{prefix: "github.com/pkoukk/tiktoken-go-loader", owner: "app/core/tokens"},
		{prefix: "github.com/pressly/goose", owner: "app/db"},
		{prefix: "github.com/prometheus", owner: "app/telemetry"},
		{prefix: "github.com/slack-go/slack", owner: "app/slack"},
		{prefix: "github.com/spf13/cobra", owner: "app/cli"},
		{prefix: "github.com/spf13/viper", owner: "app/core/config"},
		{prefix: "github.com/swaggest/swgui", owner: "app/web"},
		{prefix: "github.com/tmc/langchaingo", owner: "app/core/llm/langchain"},
		{prefix: "go.opentelemetry.io", owner: "app/telemetry"},
		{prefix: "golang.org/x/oauth2", owner: "app/agents/tools", also: "app/core/llm/anthropic"},
		{prefix: "gorm.io", owner: "app/db"},
		{prefix: "modernc.org/sqlite", owner: "app/db"},
	}
}

// coreMayUse are the libraries of core besides those that it alone may import;
// everything else there is the standard library and golang.org/x.
func coreMayUse() []library {
	return []library{
		{prefix: "go.yaml.in/yaml", owner: "app/core/config"},
		{prefix: "github.com/gofrs/flock", owner: "app/core/datadir"},
		{prefix: "github.com/go-viper/mapstructure", owner: "app/core/config"}, // viper's decoder
	}
}

// drawers are the packages of the tests that draw random numbers themselves: what all others
// draw comes from seed.
func drawers() []string { return []string{"tests/seed"} }

// coreHelpers are the packages of the tests that tests of core may import: they know core alone.
func coreHelpers() []string {
	return []string{"tests/compare", "tests/coretest", "tests/golden", "tests/llmtest", "tests/must", "tests/seed"}
}
