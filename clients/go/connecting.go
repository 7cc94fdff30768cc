package jobline

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// explain adds what to do to an error of a connection that could not be made.
func (i *identity) explain(e *Error) *Error {
	if e.Code != codes.Unavailable || e.Reason != "" {
		return e
	}
	isPlain := i.isPlain()
	has := func(part string) bool { return strings.Contains(e.Message, part) }
	switch isCut := has("error reading server preface"); {
	case has("first record does not look like a TLS handshake"):
		e.Message = "cannot connect by TLS: the server has none at this port"
	case has("signed by unknown authority"):
		before, _, _ := strings.Cut(e.Message, " (possibly because of")
		e.Message = before + ": give its authority as TLS.CA (JOBLINE_TLS_CA)"
	case isCut && isPlain:
		e.Message = "cannot connect in plaintext: the server ended the connection at once, as one with TLS does: " +
			"give TLS: &jobline.TLS{} (JOBLINE_TLS=1)"
	case !isPlain && (isCut || !i.hasConnected.Load() && (has("broken pipe") || has("connection reset"))):
		e.Message = "cannot connect by TLS: the server ended the connection after the handshake: " + i.certificateSays()
	}
	return e
}

// certificateSays returns what may be wrong with what the server was shown.
func (i *identity) certificateSays() string {
	made, isOurs := i.credentials.(*fileCredentials)
	switch {
	case !isOurs:
		return "it may ask for another certificate of the client than that of Credentials"
	case made.files.Certificate == "":
		return "it may ask for a certificate: give TLS.Certificate and TLS.Key (JOBLINE_CLIENT_CERTIFICATE, JOBLINE_CLIENT_KEY)"
	}
	if end := made.last.end(); time.Now().After(end) {
		return fmt.Sprintf("the certificate %s has expired, at %s", made.files.Certificate, end.UTC().Format(time.RFC3339))
	}
	return "it may not know the authority of the certificate " + made.files.Certificate
}
