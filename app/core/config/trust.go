package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A bobbin.yaml in the working directory may be somebody else's: it came with a
// repository or an archive. Unless --config or BOBBIN_CONFIG names it, it may only set
// what sends nothing to an address that it chooses, reads no environment variable that
// it chooses, lets nobody in, and touches no files outside of its folder, nor through
// symbolic links. Every other key is refused, so that a new one is until somebody thought
// about it.

// isOpen reports whether a file that nobody named may set the key.
func isOpen(key string) bool {
	for _, open := range []string{
		"addr", "data_dir", "agents_dir", "default_agent", "default_llm", "context_usage_threshold", "context_summary_model", "context_summary_role",
		"embedding_model", "models", "titles", "log.", "files.", "limits.",
	} {
		if key == open || strings.HasSuffix(open, ".") && strings.HasPrefix(key, open) {
			return true
		}
	}
	return false
}

// checkUnnamed returns what a file that nobody named must not set and sets. A key that a
// flag or a variable overrides is not in force and not looked at.
func (l *layers) checkUnnamed(c *Config) []error {
	if l.file.named {
		return nil
	}
	var found faults
	for _, s := range keys() {
		if _, ok := l.file.values[s.Name]; !ok || l.from[s.Name] != l.file.keyLocation(s.Name) {
			continue
		}
		if !isOpen(s.Name) {
			found.addFault(s.Name, "must not be set here")
			continue
		}
		switch s.Name {
		case "addr":
			found.checkKey(c.Loopback(), s.Name, "must not open other addresses than 127.0.0.1 here")
		case "data_dir":
			found.checkKey(isInside(l.opts.Dir, c.DataDir), s.Name, "must not leave the folder of this file")
		case "agents_dir":
			found.checkKey(isInside(l.opts.Dir, c.AgentsDir), s.Name, "must not leave the folder of this file")
		case "models":
			for i, m := range c.Models {
				found.checkKey(m.BaseURL == "", fmt.Sprintf("models[%d].base_url", i), "must not be set here: conversations and keys would go there")
				found.checkKey(m.Project == "", fmt.Sprintf("models[%d].project", i), "must not be set here: conversations would go there")
				found.checkKey(m.APIKeyEnv == "", fmt.Sprintf("models[%d].api_key_env", i), "must not be set here: it sends an environment variable away")
			}
		}
	}
	for _, f := range faultsOf("", errors.Join(found...)) {
		f.Where = l.keyLocation(f.Key)
		f.unnamed = l.file.path
	}
	return found
}

// checkDefaultFolders returns what is wrong with the folders that nobody set. They may have
// come with the working directory, as links to others.
func (l *layers) checkDefaultFolders(c *Config) []error {
	var found faults
	check := func(key, path string) {
		found.checkKey(l.from[key] != "" || isInside(l.opts.Dir, path), key,
			"%s is outside of the working directory, behind a symbolic link; if that is intended, name it: --%s %s", path, Key{Name: key}.Flag(), path)
	}
	check("data_dir", c.DataDir)
	check("agents_dir", c.AgentsDir)
	return found
}

// isInside reports whether the path, which need not exist, is inside of the directory when
// symbolic links are followed. An absolute link counts as outside.
func isInside(dir, path string) bool {
	if !filepath.IsLocal(path) {
		return false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = root.Close() }() // read-only
	_, err = root.Stat(path)
	return err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// UnnamedFile returns the path of the file in the working directory whose settings the
// error of Load refuses because nobody named it; empty if that is not the reason.
func UnnamedFile(err error) string {
	for _, f := range faultsOf("", err) {
		if f.unnamed != "" {
			return f.unnamed
		}
	}
	return ""
}
