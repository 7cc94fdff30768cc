package jobline_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// TestWhatIsWrongWithTLSIsSaidInOneLine is for the mistakes that people make: each names what to do.
func TestWhatIsWrongWithTLSIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	authority, other, folder := testserver.NewAuthority(t), testserver.NewAuthority(t), t.TempDir()
	soon, over := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	certificate, key := authority.Issue(t, folder, "server", soon)
	mine, myKey := authority.Issue(t, folder, "client", soon)
	late, lateKey := authority.Issue(t, folder, "late", over)
	foreign, foreignKey := other.Issue(t, folder, "foreign", soon)
	plain := testserver.New(t).Address
	secure := testserver.New(t, "--tls-certificate", certificate, "--tls-key", key).Address
	mutual := testserver.New(t, "--tls-certificate", certificate, "--tls-key", key, "--tls-client-ca", authority.File).Address
	expired := startSecure(t, &tls.Config{Certificates: []tls.Certificate{pairOf(t, late, lateKey)}}, nil)
	strange := startSecure(t, &tls.Config{Certificates: []tls.Certificate{pairOf(t, certificate, key)}}, nil)
	strange = strings.Replace(strange, "127.0.0.1", "127.0.0.2", 1)
	ca := authority.File
	for _, one := range []struct {
		what, at, said string
		tls            *jobline.TLS
	}{
		{"plaintext to TLS", secure, "as one with TLS does: give TLS", nil},
		{"TLS to plaintext", plain, "by TLS: the server has none at this port", &jobline.TLS{CA: ca}},
		{"another authority", secure, "signed by unknown authority: give its authority as TLS.CA", &jobline.TLS{CA: other.File}},
		{"that of the system", secure, "signed by unknown authority: give its authority as TLS.CA", &jobline.TLS{}},
		{"an expired server", expired, "certificate has expired", &jobline.TLS{CA: ca}},
		{"another name", strange, "certificate is valid for 127.0.0.1, not 127.0.0.2", &jobline.TLS{CA: ca}},
		{"no certificate", mutual, "it may ask for a certificate: give TLS.Certificate", &jobline.TLS{CA: ca}},
		{"an expired one", mutual, late + " has expired, at ", &jobline.TLS{CA: ca, Certificate: late, Key: lateKey}},
		{"a foreign one", mutual, "the authority of the certificate " + foreign, &jobline.TLS{CA: ca, Certificate: foreign, Key: foreignKey}},
		{"the right authority", secure, "", &jobline.TLS{CA: ca}},
		{"the right certificate", mutual, "", &jobline.TLS{CA: ca, Certificate: mine, Key: myKey}},
	} {
		client := clientOf(t, one.at, &jobline.ClientOptions{Connection: jobline.Connection{TLS: one.tls}})
		_, err := client.Push(newContext(t), "mail", 1, nil)
		if one.said == "" {
			if err != nil {
				t.Errorf("%s: %v", one.what, err)
			}
			continue
		}
		if !errors.Is(err, jobline.ErrNotConnected) || !strings.Contains(err.Error(), one.said) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", one.what, err)
		}
	}
}

func pairOf(t *testing.T, certificate, key string) tls.Certificate {
	t.Helper()
	return must[tls.Certificate](t)(tls.LoadX509KeyPair(certificate, key))
}

// startSecure starts a server of this process by TLS, on all addresses of this host, with health and these streams.
func startSecure(t *testing.T, config *tls.Config, jobs joblinev1.JobServiceServer) string {
	t.Helper()
	listener := must[net.Listener](t)(net.Listen("tcp", "0.0.0.0:0"))
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	if jobs != nil {
		joblinev1.RegisterJobServiceServer(server, jobs)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return "127.0.0.1:" + port
}

// TestRotatedCertificateIsShownWithoutARestart: each connection has the files of its beginning. While they do not go
// together, it has those before.
func TestRotatedCertificateIsShownWithoutARestart(t *testing.T) {
	t.Parallel()
	authority, folder := testserver.NewAuthority(t), t.TempDir()
	soon := time.Now().Add(time.Hour)
	certificate, key := authority.Issue(t, folder, "server", soon)
	first, firstKey := authority.Issue(t, folder, "first", soon)
	second, secondKey := authority.Issue(t, folder, "second", soon)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must[[]byte](t)(os.ReadFile(authority.File)))
	names, next, done := make(chan string, 1), make(chan struct{}), make(chan struct{})
	s := &streams{serve: func(_ int, stream joblinev1.JobService_StreamServer) error {
		from, _ := peer.FromContext(stream.Context())
		select {
		case names <- from.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName:
		case <-done:
		}
		if err := hello(stream); err != nil {
			return err
		}
		select {
		case <-next:
		case <-stream.Context().Done():
		}
		return nil
	}}
	address := startSecure(t, &tls.Config{
		Certificates: []tls.Certificate{pairOf(t, certificate, key)}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, s)
	own := &jobline.TLS{CA: authority.File, Certificate: filepath.Join(folder, "own.pem"), Key: filepath.Join(folder, "own.key")}
	place := func(from, to string) { rewrite(t, to, string(must[[]byte](t)(os.ReadFile(from)))) }
	place(first, own.Certificate)
	place(firstKey, own.Key)
	worker := workerOf(t, address, jobline.WorkerOptions{Connection: jobline.Connection{TLS: own}})
	jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
	start(t, worker)
	change := []func(){
		func() { place(second, own.Certificate) }, // its key does not fit
		func() { place(secondKey, own.Key) },
		func() { _ = os.Remove(own.Key) },
	}
	for i, want := range []string{"first", "first", "second", "second"} {
		if shown := <-names; shown != want {
			t.Errorf("connection %d shows %s, not %s", i, shown, want)
		}
		if i < len(change) {
			change[i]()
			next <- struct{}{}
		}
	}
	close(done)
}
