package fakeslack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// Sign returns Slack's signature (X-Slack-Signature) of a body that is sent at the
// timestamp, in seconds since 1970.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// signHeader signs by the true time, whatever Options.Now says: apps check it.
func signHeader(header http.Header, secret string, body []byte) {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	header.Set("X-Slack-Request-Timestamp", timestamp)
	header.Set("X-Slack-Signature", Sign(secret, timestamp, body))
}
