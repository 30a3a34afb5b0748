package summarize

import (
	"regexp"
	"strings"
)

// The lists of names in this file, in names.go, commands.go and problems.go are complete:
// do not extend them. What they miss is in the log, and search finds it.

// hostName matches the beginning of a host or package: example.com/shop, java.base/jdk.
var hostName = regexp.MustCompile(`^[a-z0-9-]+(?:\.[a-z][a-z0-9-]*)+$`)

// isRelativePath reports whether a word with separators is a path: its last part has
// an extension, and its first is no host.
func isRelativePath(w string) bool {
	m := relativePath.FindStringSubmatch(w)
	if m == nil || strings.HasPrefix(w, "//") {
		return false
	}
	if first := w[:strings.IndexAny(w, `/\`)]; hostName.MatchString(first) || strings.HasPrefix(first, "HKEY_") || first == "HKLM" || first == "HKCU" {
		return false
	}
	ext := strings.ToLower(m[1])
	return isFileExtension(ext) || m[1] == ext && len(ext) <= 5 && !strings.ContainsAny(w, "0123456789") || isKnownFile(w[strings.LastIndexAny(w, `/\`)+1:])
}

// isFileName reports whether a word without separators is a file's name.
func isFileName(w string) bool {
	if isKnownFile(w) {
		return true
	}
	m := fileName.FindStringSubmatch(w)
	if m == nil || isProduct(strings.ToLower(w)) {
		return false
	}
	ext := strings.ToLower(m[1])
	stem := w[:len(w)-len(m[1])-1]
	return isFileExtension(ext) && isFileStem(stem, ext)
}

// isKnownFile reports whether the word is a file's name without an extension.
func isKnownFile(w string) bool {
	const known = " Makefile GNUmakefile Dockerfile Containerfile Jenkinsfile Vagrantfile Gemfile Rakefile Procfile Brewfile Caddyfile" +
		" .env .gitignore .gitattributes .gitmodules .dockerignore .npmrc .nvmrc .bashrc .bash_profile .zshrc .profile .vimrc .editorconfig .htaccess .htpasswd .eslintrc .prettierrc .babelrc .netrc .pgpass "
	if w == "" || strings.ContainsAny(w, " ") {
		return false
	}
	return strings.Contains(known, " "+w+" ") || strings.HasPrefix(w, ".env.") || strings.HasPrefix(w, "Dockerfile.")
}

func isFileExtension(ext string) bool {
	const known = " go mod sum work py pyi ipynb js mjs cjs ts tsx jsx vue svelte java kt kts scala groovy gradle rb rs c h cc cpp cxx hpp cs csproj sln fs php" +
		" swift mm sh bash zsh fish ps1 psm1 bat cmd sql md mdx rst txt tex adoc json jsonl json5 yaml yml toml ini cfg conf config env properties xml xsd xsl html htm css" +
		" scss sass less csv tsv parquet log lock proto graphql tf tfvars hcl nix lua pl jl ex exs erl hs clj dart zig asm diff patch service timer" +
		" pdf doc docx odt xls xlsx ods ppt pptx odp rtf epub png jpg jpeg gif svg webp ico bmp tiff heic mp3 mp4 mov avi mkv wav zip tar gz tgz bz2 xz zst 7z rar jar war whl deb rpm" +
		" exe msi dll so dylib iso img db sqlite sqlite3 pem crt cer key csr p12 pfx tmpl tpl j2 wasm bin dat bak old orig tmp eml ics "
	return ext != "" && strings.Contains(known, " "+ext+" ")
}

// isFileStem reports whether the text before the extension is a file's name, and not a
// name in source code, as in console.log, this.config or a.c.
func isFileStem(stem, ext string) bool {
	const attributes = " c h r log lock env diff patch properties css html zip bin db dat bak old key service timer tmp "
	const objects = " this self cls super window document console math np pd os sys req res request response ctx context app module exports process err error obj" +
		" logger logging user session client server config cfg settings options opts args kwargs params state props data item row node event element value "
	switch ext {
	case "mod", "sum", "work":
		return stem == "go"
	case "config":
		return stem == "web" || stem == "app" || stem == "nuget" || stem == "packages" || strings.Contains(stem, ".")
	}
	return !strings.Contains(attributes, " "+ext+" ") || len(stem) > 1 && !strings.Contains(objects, " "+strings.ToLower(stem)+" ")
}

// isProduct reports whether the name is one of a library or a variable, not of a file.
func isProduct(name string) bool {
	switch name {
	case "node.js", "vue.js", "next.js", "nuxt.js", "react.js", "express.js", "three.js", "d3.js", "ember.js", "backbone.js", "chart.js", "p5.js", "nest.js", "discord.js", "socket.io", "process.env", "import.meta.env", "asp.net":
		return true
	default:
		return false
	}
}

// isLibrary reports whether the path belongs to a library: in a long stack trace only the
// few files of the user's own code matter.
func isLibrary(path string) bool {
	for _, part := range []string{"/usr/local/go/src/", "/site-packages/", "/dist-packages/", "/node_modules/", "/pkg/mod/", "/usr/lib/python3", "/lib/python3.", "/rustc/", "/.cargo/registry/", "/jre/", "/jdk"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}
