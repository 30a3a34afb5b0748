package arch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/tests/arch"
)

// TestCheckImports shows that each rule fires, with its sentence.
func TestCheckImports(t *testing.T) {
	t.Parallel()
	const standAlone = "; hide it there behind a value or a method of our own"
	tests := []struct {
		name     string
		file     string
		imported string
		want     string // empty = allowed
	}{
		{"part to core", "app/chat/send.go", "app/core", ""},
		{"part to core's package", "app/chat/send.go", "app/core/llm", ""},
		{"part to standard library", "app/chat/send.go", "encoding/json", ""},
		{"part to a free library", "app/chat/send.go", "golang.org/x/sync/errgroup", ""},
		{"chat to db", "app/chat/send.go", "app/db",
			"app/chat imports app/db: chat may import only agents, blobs, core, events and runs; give it an interface and let wire join them"},
		{"runs to db below", "app/runs/worker.go", "app/db/repositories",
			"app/runs imports app/db/repositories: runs may import only agents, core and events; give it an interface and let wire join them"},
		{"events to runs", "app/events/feed.go", "app/runs",
			"app/events imports app/runs: events may import only core; give it an interface and let wire join them"},
		{"agents to tools", "app/agents/nodes/tool_node.go", "app/agents/tools", ""},
		{"agents to chat", "app/agents/nodes/llm_node.go", "app/chat",
			"app/agents/nodes imports app/chat: agents may import only core; give it an interface and let wire join them"},
		{"tools to agents", "app/agents/tools/mcp/mcp.go", "app/agents",
			"app/agents/tools/mcp imports app/agents: inside agents, agents/tools/mcp may import only agents/tools; the arrow may not turn round"},
		{"db to migrations", "app/db/open.go", "migrations", ""},
		{"api to db", "app/api/routes.go", "app/db",
			"app/api imports app/db: api may import only agents, blobs, chat, core, events, runs and web; give it an interface and let wire join them"},
		{"slack to db", "app/slack/in.go", "app/db",
			"app/slack imports app/db: slack may import only agents, blobs, chat, core, events and runs; give it an interface and let wire join them"},
		{"cli to app", "app/cli/serve.go", "app", ""},
		{"cli to client", "app/cli/chat.go", "app/client", ""},
		{"cli to db", "app/cli/migrate.go", "app/db",
			"app/cli imports app/db: cli may import only app, api, client, core, eval, extract, ops, slack and licenses; give it an interface and let wire join them"},
		{"client to api", "app/client/client.go", "app/api",
			"app/client imports app/api: client may import only core; give it an interface and let wire join them"},
		{"app to everything", "app/app.go", "app/db/repositories", ""},
		{"main to cli", "main.go", "app/cli", ""},
		{"main to app", "main.go", "app",
			"main imports app: main may import only cli; put what it needs into a command there"},
		{"core to a part", "app/core/session.go", "app/db",
			"app/core imports app/db: core may import no other part; move what both need into it, or take it as a parameter"},
		{"migrations to core", "migrations/embed.go", "app/core",
			"migrations imports app/core: migrations may import no other part; move what both need into it, or take it as a parameter"},
		{"part to tests", "app/app.go", "tests/arch",
			"app imports tests/arch: nothing imports the tests; move what is needed into the part"},
		{"unknown part", "app/helpers/x.go", "fmt",
			"app/helpers is no part of the house: give it a row in tests/arch/rules.go, or put the code into the part that it belongs to"},
		{"part to a package for tests", "app/runs/worker.go", "tests/coretest",
			"app/runs imports tests/coretest: nothing imports the tests; move what is needed into the part"},
		{"test to a package for tests", "app/runs/worker_test.go", "tests/coretest", ""},
		{"test of core to its stores", "app/core/compaction/fit_test.go", "tests/coretest", ""},
		{"import of an unknown part", "app/chat/send.go", "app/helpers",
			"app/chat imports app/helpers, which is no part of the house: give it a row in tests/arch/rules.go"},

		{"core root to sub-package", "app/core/session.go", "app/core/llm",
			"app/core imports app/core/llm: the vocabulary knows none of its sub-packages; move what both need into core"},
		{"summarize to llm", "app/core/summarize/llm.go", "app/core/llm", ""},
		{"summarize to tokens", "app/core/summarize/llm.go", "app/core/tokens", ""},
		{"llm to summarize", "app/core/llm/model.go", "app/core/summarize",
			"app/core/llm imports app/core/summarize: inside core, core/llm may import only core; the arrow may not turn round"},
		{"contextwindow to summarize", "app/core/contextwindow/plan.go", "app/core/summarize",
			"app/core/contextwindow imports app/core/summarize: inside core, core/contextwindow may import only core, core/attach, core/llm, core/prompttext and core/tokens; the arrow may not turn round"},
		{"compaction to summarize", "app/core/compaction/keeper.go", "app/core/summarize", ""},
		{"summarize to compaction", "app/core/summarize/llm.go", "app/core/compaction",
			"app/core/summarize imports app/core/compaction: inside core, core/summarize may import only core, core/llm, core/prompttext, core/redact, core/standing and core/tokens; the arrow may not turn round"},
		{"provider to llm", "app/core/llm/openai/model.go", "app/core/llm", ""},
		{"api to handlers", "app/api/routes.go", "app/api/handlers", ""},
		{"handlers to api", "app/api/handlers/messages.go", "app/api",
			"app/api/handlers imports app/api: inside api, api/handlers may import nothing; the arrow may not turn round"},
		{"dialect to handlers", "app/api/openai/chat.go", "app/api/handlers", ""},
		{"agents to nodes", "app/agents/engine.go", "app/agents/nodes", ""},
		{"nodes to graph", "app/agents/nodes/llm_node.go", "app/agents/graph", ""},
		{"nodes to agents", "app/agents/nodes/llm_node.go", "app/agents",
			"app/agents/nodes imports app/agents: inside agents, agents/nodes may import only agents/graph and agents/tools; the arrow may not turn round"},
		{"graph to nodes", "app/agents/graph/run.go", "app/agents/nodes",
			"app/agents/graph imports app/agents/nodes: inside agents, agents/graph may import nothing; the arrow may not turn round"},
		{"repositories to models", "app/db/repositories/runs.go", "app/db/models", ""},
		{"models to repositories", "app/db/models/run.go", "app/db/repositories",
			"app/db/models imports app/db/repositories: inside db, db/models may import nothing; the arrow may not turn round"},

		{"viper in config", "app/core/config/load.go", "github.com/spf13/viper", ""},
		{"viper elsewhere", "app/cli/root.go", "github.com/spf13/viper",
			"app/cli imports github.com/spf13/viper: only app/core/config may" + standAlone},
		{"langchaingo at home", "app/core/llm/langchain/model.go", "github.com/tmc/langchaingo/llms", ""},
		{"langchaingo elsewhere", "app/agents/engine.go", "github.com/tmc/langchaingo/llms",
			"app/agents imports github.com/tmc/langchaingo/llms: only app/core/llm/langchain may" + standAlone},
		{"anthropic elsewhere", "app/agents/engine.go", "github.com/anthropics/anthropic-sdk-go",
			"app/agents imports github.com/anthropics/anthropic-sdk-go: only app/core/llm/anthropic may" + standAlone},
		{"openai elsewhere", "app/core/llm/openai/model.go", "github.com/openai/openai-go/v3/responses",
			"app/core/llm/openai imports github.com/openai/openai-go/v3/responses: only app/core/llm/responses may" + standAlone},
		{"tiktoken elsewhere", "app/core/contextwindow/plan.go", "github.com/pkoukk/tiktoken-go",
			"app/core/contextwindow imports github.com/pkoukk/tiktoken-go: only app/core/tokens may" + standAlone},
		{"gorm at home", "app/db/repositories/runs.go", "gorm.io/gorm", ""},
		{"gorm elsewhere", "app/chat/send.go", "gorm.io/gorm",
			"app/chat imports gorm.io/gorm: only app/db may" + standAlone},
		{"gorm in app.go", "app/app.go", "gorm.io/gorm",
			"app imports gorm.io/gorm: only app/db may" + standAlone},
		{"gin at home", "app/api/handlers/runs.go", "github.com/gin-gonic/gin", ""},
		{"gin elsewhere", "app/slack/web.go", "github.com/gin-gonic/gin",
			"app/slack imports github.com/gin-gonic/gin: only app/api may" + standAlone},
		{"cobra elsewhere", "main.go", "github.com/spf13/cobra",
			"main imports github.com/spf13/cobra: only app/cli may" + standAlone},
		{"uuid at home", "app/core/id.go", "github.com/google/uuid", ""},
		{"uuid in core's package", "app/core/llm/model.go", "github.com/google/uuid",
			"app/core/llm imports github.com/google/uuid: only app/core may" + standAlone},
		{"name that only begins alike", "app/chat/send.go", "gorm.iox/gorm", ""},
		{"library in core", "app/core/tokens/count.go", "github.com/acme/fast",
			"app/core/tokens imports github.com/acme/fast: core keeps to the standard library; put what needs a library into another part"},
		{"yaml in config", "app/core/config/load.go", "go.yaml.in/yaml/v3", ""},

		{"tests may cross", "app/runs/worker_test.go", "tests/dbtest", ""},
		{"tests may use libraries", "app/runs/worker_test.go", "gorm.io/gorm", ""},
		{"tests of core may use core", "app/core/contextwindow/plan_test.go", "app/core/summarize", ""},
		{"tests of core may not cross", "app/core/llm/model_test.go", "app/db",
			"a test of app/core/llm imports app/db: core is tested by itself; a test of several parts belongs in tests/integration"},
		{"tests folder", "tests/bench/bench.go", "gorm.io/gorm", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var want []string
			if tt.want != "" {
				want = []string{tt.want + " (in " + tt.file + ")"}
			}
			got := arch.CheckImports([]arch.File{{Name: tt.file, Imports: []string{tt.imported}}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("breaches of %s importing %s (-want +got):\n%s", tt.file, tt.imported, diff)
			}
		})
	}
}
