package jobline

import (
	"context"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const (
	tokenExpired = "TOKEN_EXPIRED"
	// Streams in a row that are refused for a token that has ended, where another may follow.
	renewalsMax = 5
)

// identity is a Connection with what the environment adds to it, checked. Secrets are within functions: what prints a
// Client or a Worker, whatever the verb, prints none.
type identity struct {
	credentials credentials.TransportCredentials
	fixed       func() metadata.MD                    // goes with each call
	token       func(context.Context) (string, error) // nil: none, or a fixed one
	isRenewable bool                                  // another token may follow one that has ended
	dialOptions []grpc.DialOption

	hasConnected atomic.Bool
}

func (i *identity) isPlain() bool {
	return i.credentials.Info().SecurityProtocol == insecure.NewCredentials().Info().SecurityProtocol
}

// identityOf returns what a client shows. It refuses what does not go together, and a token that would go over a
// network in plaintext.
func (c *Connection) identityOf(target string) (*identity, error) {
	fixed := metadata.New(maps.Clone(c.Metadata))
	found := &identity{credentials: c.Credentials, fixed: func() metadata.MD { return fixed }, dialOptions: c.DialOptions}
	if err := c.putTLS(found); err != nil {
		return nil, err
	}
	hasOwn := len(fixed.Get(authorization)) > 0
	token, field := c.Token, "Token"
	if token == "" && c.TokenFunc == nil && !hasOwn {
		token, field = Token(os.Getenv("JOBLINE_TOKEN")), "JOBLINE_TOKEN"
		// A Secret that was made of a file ends with a line.
		if word := strings.TrimSpace(string(token)); word != "" {
			token = Token(word)
		}
	}
	isSecret := token != "" || c.TokenFunc != nil
	switch {
	case !isSecret:
		return found, nil
	case token != "" && c.TokenFunc != nil:
		return nil, refuse(field, "TokenFunc has it: give one of both")
	case hasOwn:
		return nil, refuse(field, "Metadata has an authorization: give one of both")
	case token != "" && !isToken(string(token)):
		return nil, refuse(field, "must be one word of printable ASCII")
	case found.isPlain() && !c.InsecureToken && !isNear(target):
		return nil, refuse(field, "%s is another host, and without TLS everybody on the way can read a token: "+
			"give TLS: &jobline.TLS{} (JOBLINE_TLS=1), or InsecureToken: true", target)
	}
	if c.TokenFunc != nil {
		found.token, found.isRenewable = c.TokenFunc, true
	} else {
		fixed.Set(authorization, "Bearer "+string(token))
	}
	return found, nil
}

func (c *Connection) putTLS(found *identity) (err error) {
	files := c.TLS
	switch {
	case c.Credentials != nil && files != nil:
		return refuse("TLS", "Credentials has it: give one of both")
	case c.Credentials != nil:
		return nil
	case files == nil:
		if files, err = tlsOfEnvironment(); err != nil {
			return err
		}
	}
	if files == nil {
		found.credentials = insecure.NewCredentials()
		return nil
	}
	made, err := newFileCredentials(*files)
	if err != nil {
		return err
	}
	found.credentials = made
	return nil
}

// outgoing returns the context of a call that begins now, and the token that it shows if another may follow. An
// authorization that the context has already is shown alone. It returns ErrNoToken where TokenFunc returned none:
// nothing was sent.
func (i *identity) outgoing(ctx context.Context, method string) (context.Context, string, error) {
	given, _ := metadata.FromOutgoingContext(ctx)
	shown, now := i.fixed(), ""
	if hasAuthorization(ctx) || strings.HasPrefix(method, "/grpc.health.v1.") { // which asks nobody who calls
		shown = shown.Copy()
		shown.Delete(authorization)
	} else if i.token != nil {
		var err error
		if now, err = i.ask(ctx); err != nil {
			return nil, "", err
		}
		shown = metadata.Join(shown, metadata.Pairs(authorization, "Bearer "+now))
	}
	if len(shown) == 0 {
		return ctx, now, nil
	}
	return metadata.NewOutgoingContext(ctx, metadata.Join(shown, given)), now, nil
}

// hasAuthorization reports whether a call shows what its context has in the place of the client's token: it shares
// nothing with the calls of others then.
func hasAuthorization(ctx context.Context) bool {
	given, _ := metadata.FromOutgoingContext(ctx)
	return len(given.Get(authorization)) > 0
}

// ask asks TokenFunc, which is the program's, for the token of now.
func (i *identity) ask(ctx context.Context) (found string, err error) {
	found, err = func() (found string, err error) {
		defer recovered(&err)
		return i.token(ctx)
	}()
	why := ""
	switch {
	case err != nil:
		why = oneLine(err.Error())
	case !isToken(found):
		why = "it returned no text of printable ASCII"
	default:
		return found, nil
	}
	return "", newError(ErrNoToken, "TokenFunc: %s: the call was not sent", why).because(err)
}

// mayRenew reports whether the same call may succeed with another token.
func (i *identity) mayRenew(e *Error) bool { return i.isRenewable && e.Reason == tokenExpired }

func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// Targets that do not leave this host.
var near = regexp.MustCompile(`^((dns|passthrough):(///)?)?(localhost|127(\.\d{1,3}){3}|\[::1\]|\[::ffff:127\.0\.0\.1\])(:\d+)?$`)

func isNear(target string) bool {
	return strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") ||
		near.MatchString(strings.ToLower(target))
}
