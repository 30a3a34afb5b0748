package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/tests/must"
)

// toolReference is the page with the table of the keys of definitions.
const toolReference = "../../docs/TOOLS.md"

// TestToolReference: docs/TOOLS.md documents every key of a definition, and nothing else.
func TestToolReference(t *testing.T) {
	t.Parallel()
	checkTables(t, toolReference, [][2]string{{"## Keys", toolTable()}})
}

// toolTable returns the table of the keys.
func toolTable() string {
	var b strings.Builder
	b.WriteString("| key | kinds | type | default | allowed | meaning |\n|---|---|---|---|---|---|\n")
	for _, k := range agents.ToolKeys() {
		kinds := "all"
		if len(k.Kinds) > 0 {
			kinds = ""
			for i, kind := range k.Kinds {
				if i > 0 {
					kinds += ", "
				}
				kinds += string(kind)
			}
		}
		value := k.Default
		if value == "" && len(k.Required) > 0 {
			value = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", k.Path, kinds, k.Type, value, k.Bounds, k.Meaning)
	}
	return b.String()
}

// yamlBlock matches the files in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n# (tools|agents)/([a-z_]+)\\.yaml\n(.*?)```")

// Every file in docs/TOOLS.md and docs/AGENTS.md can be copied as it is.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{toolReference: 7, reference: 1} {
		text := must.Get(os.ReadFile(page))(t)
		blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
		for _, block := range blocks {
			f := newToolFolders(t)
			must.Do(t, os.Mkdir(filepath.Join(f.root, "tools/openapi"), 0o755))
			f.write("tools/openapi/shop.yaml", strings.ReplaceAll(shopDocument, "\t", "  "))
			f.write("tools/files.yaml", "name: files\nkind: mcp\ncommand: npx\n")
			f.write(block[1]+"/"+block[2]+".yaml", block[3])
			if _, err := agents.LoadCatalog(f.agents(), f.known(core.ToolKinds()...)); err != nil {
				t.Errorf("%s/%s.yaml: %v", block[1], block[2], err)
			}
		}
		if len(blocks) < least {
			t.Errorf("%s: found %d files", page, len(blocks))
		}
	}
}

const shopDocument = `openapi: 3.1.0
info: {title: Shop, version: "1"}
servers: [{url: "https://shop.example.com"}]
paths:
	/items/{id}:
		get: {operationId: getItem, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {}}
	/orders:
		post: {operationId: createOrder, responses: {}}
`
