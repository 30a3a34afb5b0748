package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app/core"
	"bobbin/app/core/config"
)

func (p *program) keys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make and look at API keys",
		Long: "A key's name is an owner: callers with the key see what was made with keys of that name. Keys are\n" +
			"settings (auth.keys), so that a new one counts from the next start on.",
		Args: needsCommand, RunE: showHelp,
	}
	create := &cobra.Command{
		Use: "new <name>", Short: "Make a key and say how to set it",
		Long: "Makes a random secret and prints it once. The setting holds its hash only, so that who reads the\n" +
			"configuration cannot use it. Nothing is stored.",
		Example: "  bobbin keys new web",
		Args:    oneWord("which name? It is the owner of what the key makes"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.newKey(args[0]) },
	}
	list := &cobra.Command{
		Use: "list", Short: "List the configured keys, without their secrets",
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
	p.withJSON(create, list, check)
	cmd.AddCommand(create, list, check)
	return cmd
}

// keyView is a key as it may be seen.
type keyView struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // its first digits, enough to tell keys apart
	Stored string `json:"stored"` // hash, or plain
	From   string `json:"from"`
}

const shownDigits = 12

func viewOf(k config.APIKey, from string) keyView {
	sum, _ := k.Sum() // settings that were loaded are sound
	v := keyView{Name: k.Name, SHA256: hex.EncodeToString(sum[:])[:shownDigits], Stored: "plain", From: from}
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

func (p *program) listKeys(cmd *cobra.Command) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	views := make([]keyView, 0, len(cfg.Auth.Keys))
	for _, k := range cfg.Auth.Keys {
		views = append(views, viewOf(k, origins.Of("auth.keys").From))
	}
	if p.json {
		return p.printJSON(core.Page[keyView]{Items: views})
	}
	if len(views) == 0 {
		fmt.Fprintf(p.Out, "no keys: only this machine may call. This makes one: %s keys new <name>\n", programName())
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSHA-256\tSTORED AS\tFROM")
	for _, v := range views {
		fmt.Fprintf(w, "%s\t%s…\t%s\t%s\n", v.Name, v.SHA256, v.Stored, v.From)
	}
	return w.Flush()
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
	return core.Errorf(core.ErrUnauthorized, "this is none of the configured keys (SHA-256 %s…)", hex.EncodeToString(sum[:])[:shownDigits])
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
