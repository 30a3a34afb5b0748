package standing_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/core/standing"
)

// maxFalse is how many messages of 100 may be taken for an instruction.
const maxFalse = 3.0

// TestShowStanding prints what is recognized, changed and withdrawn, by language, of the
// cases that the rules were fitted to first, and of those that were written later, each set
// before rules were made for what it showed. With
// BOBBIN_RECALL_DATA it prints what is found in conversations that set nothing.
func TestShowStanding(t *testing.T) {
	t.Parallel()
	table := fmt.Sprintf("\n%-9s %-3s %20s %20s %20s\n", "cases", "", "recognized", "changed", "withdrawn")
	for _, language := range []string{"en", "de", "fr", "es"} {
		table += showRow(t, "tuned", language, cases{instructions(), changes(), withdrawals()})
		table += showRow(t, "early", language, cases{earlyInstructions(), earlyChanges(), earlyWithdrawals()})
		table += showRow(t, "unusual", language, cases{instructions: unusualInstructions()})
		table += showRow(t, "later", language, cases{laterWordings(), laterChanges(), nil})
		table += showRow(t, "informal", language, cases{informalWordings(), informalChanges(), informalWithdrawals()})
	}
	t.Log(table)
}

type cases struct {
	instructions         []sample
	changes, withdrawals []change
}

func showRow(t *testing.T, name, language string, c cases) string {
	t.Helper()
	var samples []sample
	for _, s := range c.instructions {
		if s.language == language {
			samples = append(samples, s)
		}
	}
	in := func(changes []change) (out []change) {
		for _, c := range changes {
			if c.language == language {
				out = append(out, c)
			}
		}
		return out
	}
	changes, withdrawals := in(c.changes), in(c.withdrawals)
	return fmt.Sprintf("%-9s %-3s %20s %20s %20s\n", name, language, measureInstructions(t, samples), measureChanges(t, changes, false), measureChanges(t, withdrawals, true))
}

// TestShowStandingFalse prints what is taken for an instruction in long conversations
// between two people, who both count as users. The data may not be copied.
func TestShowStandingFalse(t *testing.T) {
	t.Parallel()
	path := os.Getenv("BOBBIN_RECALL_DATA")
	if path == "" {
		t.Skip("nothing to measure with: set BOBBIN_RECALL_DATA to the path of recall-dev.json, or use make show-standing")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("nothing to measure with: set BOBBIN_RECALL_DATA to the path of recall-dev.json (%v)", err)
	}
	var talks []talk
	if err := json.Unmarshal(raw, &talks); err != nil {
		t.Fatal(err)
	}
	messages, wrong, withdrawing := 0, 0, 0
	var gone []string
	var sentences strings.Builder
	for _, talk := range talks {
		gone = append(gone, lost(talk.texts())...)
		for _, m := range talk.Messages {
			messages++
			found := standing.Find(m.Text)
			for _, f := range found {
				fmt.Fprintf(&sentences, "%s: %+v\n", m.ID, f)
			}
			switch {
			case len(found) == 0:
			case found[0].Withdraws || found[0].Amends: // without effect where nothing stands
				withdrawing++
			default:
				wrong++
			}
		}
	}
	rate := 100 * float64(wrong) / float64(max(messages, 1))
	t.Logf("%d messages: %.2f of 100 taken for an instruction, %.2f for a change or withdrawal\n%s", messages, rate, 100*float64(withdrawing)/float64(max(messages, 1)), &sentences)
	t.Logf("%d instructions are gone after these conversations: %q", len(gone), gone)
	if len(gone) > 0 {
		t.Errorf("got %d instructions lost, want none", len(gone))
	}
	if rate > maxFalse {
		t.Errorf("got %.2f false ones in 100 messages, want at most %.0f", rate, maxFalse)
	}
}
