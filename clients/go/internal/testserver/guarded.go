package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Key returns the API key of a name, the same one each time.
func Key(name string) string {
	random := sha256.Sum256([]byte(name))
	return "jl_" + base64.RawURLEncoding.EncodeToString(random[:])
}

// KeyLines returns the lines of a file of callers for a key that may do everything with queues of its name, up to
// an end; a zero one never comes.
func KeyLines(name string, end time.Time) string {
	expires := ""
	if !end.IsZero() {
		expires = ", expires = " + end.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf(`[[roles.%[1]s]]
queues = ["%[1]s*"]
verbs = ["push", "work", "read", "read_payload", "manage"]
[[keys]]
name = "%[1]s"
roles = ["%[1]s"]
hashes = [{ hash = "sha256:%[2]x"%[3]s }]
`, name, sha256.Sum256([]byte(Key(name))), expires)
}

// Authority issues certificates.
type Authority struct {
	// File has its own certificate.
	File string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority whose file is in a folder of the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(t, template, template, a.key)
	writePEM(t, a.File, "CERTIFICATE", a.cert.Raw)
	return a
}

// Issue writes a certificate for a name and this host, which ends then, and its key to NAME.pem and NAME.key of a
// folder, and returns their paths.
func (a *Authority) Issue(t testing.TB, folder, name string, end time.Time) (certificate, key string) {
	t.Helper()
	private := newKey(t)
	made := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: end.Add(-2 * time.Hour), NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, private)
	certificate, key = filepath.Join(folder, name+".pem"), filepath.Join(folder, name+".key")
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, key, "PRIVATE KEY", der)
	writePEM(t, certificate, "CERTIFICATE", made.Raw)
	return certificate, key
}

func (a *Authority) sign(t testing.TB, template, parent *x509.Certificate, of *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
