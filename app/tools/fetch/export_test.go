package fetch

import "net/url"

// HTMLText is what becomes of an HTML page.
func HTMLText(page string) string {
	return readHTML(page, &url.URL{Scheme: "http", Host: "a.example"}, 1<<20, false).text()
}
