package deliveries_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// signature computes a signature from the words of the specification, without
// anything of the sender: a receiver's side of its own.
func signature(secret string, header http.Header, body []byte) string {
	raw, err := base64.StdEncoding.DecodeString(strings.Split(secret, "_")[1])
	if err != nil {
		return err.Error()
	}
	signed := strings.Join([]string{header.Get("webhook-id"), header.Get("webhook-timestamp"), string(body)}, ".")
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(signed))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// verify checks a request as a receiver does.
func verify(t *testing.T, secret string, r got) {
	t.Helper()
	version, sum, _ := strings.Cut(r.header.Get("webhook-signature"), ",")
	if want := signature(secret, r.header, r.body); version != "v1" || sum != want {
		t.Errorf("signature: got %s,%s, want v1,%s", version, sum, want)
	}
	at, err := strconv.ParseInt(r.header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		t.Errorf("timestamp: got %q", r.header.Get("webhook-timestamp"))
	}
}

// The example of the specification of Standard Webhooks.
func TestVerifierKnowsTheExample(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	header.Set("webhook-timestamp", "1614265330")
	const want = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := signature(secret, header, []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
