package fakegrpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"
)

// Certificates are files of an authority's certificate and of one that it has given to both ends.
type Certificates struct{ Cacert, Cert, Key string }

// MakeCertificates makes an authority, and a pair for 127.0.0.1 that is good for servers and clients.
func MakeCertificates(dir string) (Certificates, error) {
	c := Certificates{Cacert: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	authority, authorityKey, err := certificate(nil, nil)
	if err != nil {
		return c, err
	}
	pair, key, err := certificate(authority, authorityKey)
	if err != nil {
		return c, err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return c, err
	}
	for file, block := range map[string]*pem.Block{
		c.Cacert: {Type: "CERTIFICATE", Bytes: authority.Raw}, c.Cert: {Type: "CERTIFICATE", Bytes: pair.Raw}, c.Key: {Type: "EC PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			return c, err
		}
	}
	return c, nil
}

func certificate(by *x509.Certificate, byKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if by == nil {
		by, byKey = template, key
	} else {
		template.SerialNumber, template.Subject.CommonName = big.NewInt(2), "test"
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, byKey)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParseCertificate(raw)
	return parsed, key, err
}

// Mutual is the server's end of a connection on which both show their certificates.
func (c Certificates) Mutual() (credentials.TransportCredentials, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(c.Cacert)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}), nil
}

// WriteConfig writes a file of --cloud-config into dir.
func WriteConfig(dir, address string, c Certificates) (file string, err error) {
	text := fmt.Sprintf("address: %s\ngrpc_timeout: 5s\n", address)
	if c.Cert != "" {
		text += fmt.Sprintf("key: %s\ncert: %s\ncacert: %s\n", c.Key, c.Cert, c.Cacert)
	}
	file = filepath.Join(dir, "cloud-config.yaml")
	return file, os.WriteFile(file, []byte(text), 0o600)
}
