// Package extract reads the text of documents: PDF, Word, Excel, PowerPoint, HTML.
//
// Documents come from strangers, and the libraries that parse them may loop, panic or take any
// amount of memory. So each document is parsed in its own process, which is this program with
// the command Command, under limits that the operating system enforces: CPU time, memory, open
// files, no writes. The process reads the document from standard input, has an empty
// environment, and answers page by page; if it dies, what it has sent until then is the text.
// Nothing in a document is executed or loaded: no scripts, no macros, no formulas, no external
// entities, no links.
//
//	Reader.Read ──document──▶ Serve (child process)
//	            ◀──frames───
package extract
