package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app/core"
	"bobbin/app/core/config"
)

func (p *program) keys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make, list and revoke API keys",
		Long: "A key acts for an owner: callers with the key see what was made with keys of that owner. Keys are in\n" +
			"the database (create, revoke), where they count at once, or in the configuration (auth.keys).",
		Args: needsCommand, RunE: showHelp,
	}
	setting := &cobra.Command{
		Use: "new <name>", Short: "Make a key for the configuration, and say how to set it",
		Long: "Makes a random secret and prints it once. The setting holds its hash only, so that who reads the\n" +
			"configuration cannot use it. Nothing is stored: the key counts from the next start on.",
		Example: "  bobbin keys new web",
		Args:    oneWord("which name? It is the owner of what the key makes"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.newKey(args[0]) },
	}
	list := &cobra.Command{
		Use: "list", Short: "List the keys, without their secrets",
		Example: "  bobbin keys list --json",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.listKeys(cmd) },
	}
	check := &cobra.Command{
		Use: "check [secret]", Short: "Say whose key a secret is",
		Long: "Says whose key a secret is. Without one it is read from the standard input, where other users of\n" +
			"this machine cannot see it.",
		Example: "  bobbin keys check < secret.txt",
		Args:    atMost(1),
		RunE:    p.checkKey,
	}
	p.withJSON(setting, list, check)
	cmd.AddCommand(p.createKey(), list, p.revokeKey(), check, setting)
	return cmd
}

// keyView is a key of the configuration as it may be seen.
type keyView struct {
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	SHA256 string `json:"sha256"` // its first digits, enough to tell keys apart
	Stored string `json:"stored"` // hash, or plain
	From   string `json:"from"`
}

const shownDigits = 12

func viewOf(k config.APIKey, from string) keyView {
	sum, _ := k.Sum() // settings that were loaded are sound
	v := keyView{Name: k.Name, Owner: k.Name, SHA256: hex.EncodeToString(sum[:])[:shownDigits], Stored: "plain", From: from}
	if k.Hashed() {
		v.Stored = "hash"
	}
	return v
}

func (p *program) newKey(name string) error {
	if !config.ValidKeyName(name) {
		return core.Errorf(core.ErrInvalid, "the name %q must be 1 to 64 letters, digits, and . _ @ -", name)
	}
	key, secret := config.NewAPIKey(name)
	setting := name + ":" + key.Secret.Reveal()
	if p.json {
		return p.printJSON(struct {
			Name    string `json:"name"`
			Secret  string `json:"secret"`
			Setting string `json:"setting"`
		}{name, secret, setting})
	}
	fmt.Fprintf(p.Out, "secret, for the caller; it is shown only now:\n  %s\n\n", secret)
	fmt.Fprintf(p.Out, "in bobbin.yaml, which needs the hash only:\n  auth:\n    keys:\n      - %q\n\n", setting)
	fmt.Fprintf(p.Out, "or in the environment, several with commas:\n  BOBBIN_AUTH_KEYS=%s\n\n", setting)
	fmt.Fprintf(p.Out, "then start Bobbin again; the caller sends it with every request:\n  Authorization: Bearer %s\n", secret)
	return nil
}

func (p *program) checkKey(cmd *cobra.Command, args []string) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	secret := strings.Join(args, "")
	if len(args) == 0 {
		if secret, err = p.readSecret(); err != nil {
			return err
		}
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	for _, k := range cfg.Auth.Keys {
		if known, ok := k.Sum(); !ok || known != sum {
			continue
		}
		if p.json {
			return p.printJSON(viewOf(k, origins.Of("auth.keys").From))
		}
		fmt.Fprintf(p.Out, "this is a key of %s\n", k.Name)
		return nil
	}
	return p.checkStored(cmd, strings.TrimSpace(secret))
}

// maxSecret bounds what is read as a secret, in bytes.
const maxSecret = 4096

// readSecret reads a secret without showing it.
func (p *program) readSecret() (string, error) {
	if term.IsTerminal(int(p.In.Fd())) {
		fmt.Fprint(p.Err, "secret: ")
		raw, err := term.ReadPassword(int(p.In.Fd()))
		fmt.Fprintln(p.Err)
		return string(raw), err
	}
	return p.readInput(maxSecret)
}
