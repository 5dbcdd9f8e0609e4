package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is one cluster's own certificate authority, made anew for every start
// and worthless afterwards.
type pki struct {
	dir  string
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64 // serial number
}

// newPKI writes the authority to dir/ca.crt and dir/ca.key.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	p := &pki{dir: dir, key: key}
	template := p.template("controlplane-ca")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	p.ca = template
	if p.ca, err = p.sign("ca", template, key); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *pki) path(file string) string { return filepath.Join(p.dir, file) }

// server writes dir/<name>.crt and .key: a certificate for every name that the
// cluster's own servers are called by, and for one more address.
func (p *pki) server(name, address string) error {
	template := p.template(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1), net.ParseIP(address)}
	return p.issue(name, template)
}

// client writes dir/<name>.crt and .key for a user of the API, with the groups
// that RBAC knows it by.
func (p *pki) client(name, user string, groups ...string) error {
	template := p.template(user)
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return p.issue(name, template)
}

func (p *pki) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of %s: %w", name, err)
	}
	_, err = p.sign(name, template, key)
	return err
}

func (p *pki) sign(name string, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, &key.PublicKey, p.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	if err := writePEM(p.path(name+".crt"), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	if err := writeKey(p.path(name+".key"), key); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// signingKey writes the pair that service account tokens are signed and
// verified with: dir/<name>.key and dir/<name>.pub.
func (p *pki) signingKey(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of %s: %w", name, err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding the public key of %s: %w", name, err)
	}
	if err := writePEM(p.path(name+".pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(p.path(name+".key"), key)
}

func (p *pki) template(commonName string) *x509.Certificate {
	p.next++
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(p.next),
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(7 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// kubeconfigFormat holds the credentials by value, so that the file can be
// copied elsewhere.
const kubeconfigFormat = `apiVersion: v1
kind: Config
clusters:
- name: windlass
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    token: %s
contexts:
- name: windlass
  context:
    cluster: windlass
    user: %s
current-context: windlass
`
