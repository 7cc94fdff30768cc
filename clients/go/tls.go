package jobline

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// TLS is how a client knows a server, and what it shows it. All are names of PEM files, and are read again for
// each new connection: files that do not go together are not used, and those before them stay in use.
type TLS struct {
	// CA has the authorities that the server's certificate is checked by; default those of the system.
	CA string
	// Certificate and Key are shown to servers that ask clients for one; both or none.
	Certificate, Key string
}

// tlsOfEnvironment returns the TLS that JOBLINE_TLS and its kin ask for; nil for none. A file turns it on, too, unless
// JOBLINE_TLS is 0.
func tlsOfEnvironment() (*TLS, error) {
	found := TLS{
		CA:          os.Getenv("JOBLINE_TLS_CA"),
		Certificate: os.Getenv("JOBLINE_CLIENT_CERTIFICATE"),
		Key:         os.Getenv("JOBLINE_CLIENT_KEY"),
	}
	switch strings.ToLower(os.Getenv("JOBLINE_TLS")) {
	case "1", "true", "yes", "on":
		return &found, nil
	case "":
		if found != (TLS{}) {
			return &found, nil
		}
		return nil, nil
	case "0", "false", "no", "off": // whatever files there are
		return nil, nil
	}
	return nil, refuse("JOBLINE_TLS", "must be 1 or 0")
}

// config reads the files.
func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if (t.Certificate == "") != (t.Key == "") {
		return nil, refuse("TLS", "a certificate needs its key, and a key its certificate")
	}
	if t.CA != "" {
		roots, err := readPEM("CA", t.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			return nil, refuse("TLS", "CA: %s: has no certificate in PEM", t.CA)
		}
	}
	if t.Certificate == "" {
		return config, nil
	}
	chain, err := readPEM("Certificate", t.Certificate)
	if err != nil {
		return nil, err
	}
	key, err := readPEM("Key", t.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, refuse("TLS", "%s and %s: %s", t.Certificate, t.Key, strings.TrimPrefix(err.Error(), "tls: "))
	}
	config.Certificates = []tls.Certificate{pair}
	// Whatever authorities the server names: it says itself what is wrong with another one.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return config, nil
}

func readPEM(what, path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		return nil, refuse("TLS", "%s: %s: %v", what, path, err)
	}
	return bytes.TrimSpace(data), nil
}

// fileCredentials are those of files that may change: each handshake has what is in them then.
type fileCredentials struct {
	files TLS
	last  *lastConfig // shared with clones
}

type lastConfig struct {
	mu     sync.Mutex
	config *tls.Config
}

// end returns when the client's certificate ends; there is one.
func (l *lastConfig) end() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config.Certificates[0].Leaf.NotAfter
}

// newFileCredentials reads the files once, so that a mistake is known before the first call.
func newFileCredentials(files TLS) (*fileCredentials, error) {
	config, err := files.config()
	if err != nil {
		return nil, err
	}
	return &fileCredentials{files, &lastConfig{config: config}}, nil
}

// now returns the credentials of now, and why they are not those of the files.
func (c *fileCredentials) now() (credentials.TransportCredentials, error) {
	config, err := c.files.config()
	c.last.mu.Lock()
	defer c.last.mu.Unlock()
	if err == nil {
		c.last.config = config
	}
	return credentials.NewTLS(c.last.config), err
}

// ClientHandshake shakes hands with what is in the files now.
func (c *fileCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	found, why := c.now()
	secure, info, err := found.ClientHandshake(ctx, authority, conn)
	if err != nil && why != nil {
		err = errors.Join(err, why)
	}
	return secure, info, err
}

// ServerHandshake is not for clients.
func (c *fileCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are the credentials of a client")
}

// Info says that it is TLS.
func (c *fileCredentials) Info() credentials.ProtocolInfo { return credentials.NewTLS(nil).Info() }

// Clone returns credentials of the same files.
func (c *fileCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

// OverrideServerName is not needed: grpc.WithAuthority has the name in each handshake.
func (c *fileCredentials) OverrideServerName(string) error {
	return errors.New("use grpc.WithAuthority")
}
