import { svelte } from "@sveltejs/vite-plugin-svelte";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Writes a .gz and a .br beside every text file over 512 bytes, with the same bytes on every machine. */
function compress(): Plugin {
  let outDir = "";
  return {
    name: "compress",
    apply: "build",
    configResolved: ({ build }) => void (outDir = build.outDir),
    closeBundle() {
      for (const name of readdirSync(outDir, { recursive: true, encoding: "utf8" }).sort()) {
        const file = join(outDir, name);
        if (!/\.(html|js|css|svg|json|webmanifest)$/.test(name) || statSync(file).size <= 512) continue;
        const packed = gzipSync(readFileSync(file), { level: 9 });
        packed[9] = 255; // the header's operating system: unknown
        writeFileSync(file + ".gz", packed);
        writeFileSync(file + ".br", brotliCompressSync(readFileSync(file)));
      }
    },
  };
}

/** Takes each icon from a file of its own: the package's index has 2,000. */
function icons(): Plugin {
  const fileOf = (name: string) => name.replace(/([a-z])([A-Z0-9])/g, "$1-$2").toLowerCase();
  return {
    name: "icons",
    enforce: "pre",
    transform: (code) =>
      code.replace(/^import \{([^}]*)\} from "lucide";$/m, (_, names: string) =>
        names.replace(/(\w+),\s*/g, (_, name: string) => `import ${name} from "lucide/dist/esm/icons/${fileOf(name)}.mjs";`),
      ),
  };
}

/** The widget's script is loaded into pages of others without type="module": it imports nothing, and its names stay its own. */
function classic(): Plugin {
  return {
    name: "classic",
    generateBundle(_, bundle) {
      const script = bundle["widget.js"];
      if (script?.type !== "chunk" || script.imports.length > 0) this.error("widget.js has to be one file");
      script.code = `(() => {${script.code}})();\n`;
    },
  };
}

const server = process.env.BOBBIN ?? "http://127.0.0.1:8080";

export default defineConfig({
  base: "./",
  plugins: [icons(), svelte(), classic(), compress()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    rolldownOptions: {
      input: { index: "index.html", frame: "widget.html", widget: "src/widget/host.ts" },
      // Pages of others name the widget's script, so its name never changes.
      output: {
        entryFileNames: (chunk) => (chunk.name === "widget" ? "widget.js" : "assets/[name]-[hash].js"),
        advancedChunks: {
          groups: [
            // What every opening has is one file; the rooms, the panel and the texts are others.
            { name: "base", minShareCount: 2, test: /src\/(?!text\/markdown|words\.(en|de)|problemWords|context\/(?!context|places|threadWords\.ts)|parts\/(Dialog|Panel)\.|(runs|slack|ops)\/(?!menu|title))/ },
            // It waits for the texts, so these need nothing of it.
            { name: "language", priority: 1, test: /src\/(language|text\/count)/ },
          ],
        },
      },
    },
    target: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
    license: { fileName: "assets/licenses.json" }, // of the packages that are in the files
    cssCodeSplit: true, // what loads later brings its style: parts/Lazy.svelte asks again for a file that fails
    assetsInlineLimit: 0, // data: URLs are for images of messages only
  },
  server: {
    proxy: { "/api": server },
  },
});
